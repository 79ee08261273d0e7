package identity

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"
)

// Azure exchanges the pod's token for one of Microsoft Entra ID, as Azure's workload identity has prepared it. It is
// the password of a user of Azure Managed Redis or Azure Cache for Redis; the user is the object ID of the identity.
func Azure(ctx context.Context, env Environment) (token string, again time.Duration, err error) {
	given, err := env.need("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE")
	if err != nil {
		return "", 0, err
	}
	assertion, err := readToken(given[2])
	if err != nil {
		return "", 0, err
	}
	authority := strings.TrimSuffix(cmp.Or(env("AZURE_AUTHORITY_HOST"), "https://login.microsoftonline.com"), "/")
	return oauth(post(ctx, authority+"/"+url.PathEscape(given[0])+"/oauth2/v2.0/token", url.Values{
		"grant_type":            {"client_credentials"},
		"client_id":             {given[1]},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		"client_assertion":      {assertion},
		"scope":                 {"https://redis.azure.com/.default"},
	}))
}
