package lock

import (
	"testing"
	"testing/synctest"
	"time"
)

// A keeper begins after its wait, or with the first nudge, and not once its lease is removed.
func TestAKeeperBeginsWhenThereIsSomethingToDo(t *testing.T) {
	for name, c := range map[string]struct {
		nudges []string // the jobs that are nudged, one a second
		lasts  time.Duration
		begun  time.Duration // 0 = never
	}{
		"the run is short":                {lasts: 5 * time.Second},
		"the lease has to be extended":    {lasts: 20 * time.Second, begun: 10 * time.Second},
		"it is nudged":                    {nudges: []string{"", "job"}, lasts: 20 * time.Second, begun: time.Second},
		"another job is nudged":           {nudges: []string{"other"}, lasts: 5 * time.Second},
		"the nudge comes after the end":   {nudges: []string{"other", "other", "job"}, lasts: 2500 * time.Millisecond},
		"it is nudged in the last second": {nudges: []string{"other", "job"}, lasts: 2500 * time.Millisecond, begun: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var k keepers
				began, times := time.Now(), []time.Duration{}
				begun := k.add(&Lease{claim: Claim{Job: "job"}, nudged: make(chan struct{}, 1)}, 10*time.Second, func() {
					times = append(times, time.Since(began))
				})
				go func() {
					for _, job := range c.nudges {
						time.Sleep(time.Second)
						k.nudge(job)
					}
				}()
				time.Sleep(c.lasts)
				if told := begun(); told != (c.begun > 0) {
					t.Errorf("it says that it has begun: %v", told)
				}
				if len(k.leases) > 0 {
					t.Error("its lease is kept for ever")
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				switch {
				case c.begun == 0 && len(times) > 0, c.begun > 0 && (len(times) != 1 || times[0] != c.begun):
					t.Errorf("it began at %v, want at %v", times, c.begun)
				}
			})
		})
	}
}
