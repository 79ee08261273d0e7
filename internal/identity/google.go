package identity

import (
	"cmp"
	"context"
	"time"
)

// Google gets an access token of the service account that this process runs as, from the metadata server. It is the
// password of a user of Memorystore.
func Google(ctx context.Context, env Environment) (token string, again time.Duration, err error) {
	host := cmp.Or(env("GCE_METADATA_HOST"), "metadata.google.internal")
	url := "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token"
	return oauth(get(ctx, url, "Metadata-Flavor", "Google"))
}
