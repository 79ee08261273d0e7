package convert

import "testing"

func TestATableIsNotConverted(t *testing.T) {
	for _, row := range []struct {
		name, text string
		want       bool
	}{
		{"old", "service: shop\njobs: []\n", true},
		{"old", "# jobs\njobs:\n  - {name: a}\n", true},
		{"old", "\"service\": shop\n", true},
		{"old", ` {"service": "shop", "jobs": []}`, true},
		{"broken.yaml", "servce: shop\n", true},
		{"broken.yml", "- a\n", true},
		{"crontab", "0 9 * * * run jobs: all\n", false},
		{"crontab", "MAILTO=ops\n@daily /bin/service: x\n", false},
		{"cron.yaml", "apiVersion: batch/v1\nkind: CronJob\n", false},
		{"cron.yaml", "kind: List\nitems: []\n", false},
		{"cron.json", `{"apiVersion": "v1", "kind": "List", "items": []}`, false},
	} {
		if got := IsTable(Input{Name: row.name, Data: []byte(row.text)}); got != row.want {
			t.Errorf("%s %q: %v", row.name, row.text, got)
		}
	}
}
