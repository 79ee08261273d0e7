package call

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// adminOf is the address of a server that stands for the replica's own.
func adminOf(a *app) netip.AddrPort { return a.Listener.Addr().(*net.TCPAddr).AddrPort() }

func TestARedirectToTheAdminAddressIsNotFollowed(t *testing.T) {
	own := newApp(t, nil)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		to := strings.Replace(own.URL, "127.0.0.1", host, 1) + "/v1/drain"
		a := newApp(t, redirecting(307, &to))
		res := New(config.HTTP{URL: a.URL + "/from"}, Options{Admin: adminOf(own)}).Execute(t.Context(), aRun())
		wantStatus(t, res, execute.Failed)
		if !errors.Is(res.Err, errAdmin) || a.count() != 1 || own.count() != 0 {
			t.Errorf("%s: %v, %d requests came to the admin address", to, res.Err, own.count())
		}
	}
}

func TestTheAdminAddressIsNotCalled(t *testing.T) {
	own, other := newApp(t, nil), newApp(t, nil)
	for _, remote := range []bool{false, true} {
		o := Options{Admin: adminOf(own), AllowRemote: remote}
		res := New(config.HTTP{URL: own.URL + "/v1/drain"}, o).Execute(t.Context(), aRun())
		wantStatus(t, res, execute.Failed) // never begun, but no other replica would do better
		if !errors.Is(res.Err, errAdmin) || own.count() != 0 {
			t.Errorf("%v, %d requests came", res.Err, own.count())
		}
		wantStatus(t, New(config.HTTP{URL: other.URL}, o).Execute(t.Context(), aRun()), execute.Succeeded)
	}
	w := newTransport("", true)
	w.admin = netip.MustParseAddrPort("127.0.0.1:9748")
	for address, refused := range map[string]bool{
		"127.0.0.1:9748": true, "[::ffff:127.0.0.1]:9748": true, "0.0.0.0:9748": true, "[::]:9748": true,
		"127.0.0.1:9747": false, "[::1]:9748": false, "10.0.0.1:9748": false,
	} {
		if err := w.control(t.Context(), "tcp", address, nil); (err != nil) != refused {
			t.Errorf("%s: %v", address, err)
		}
	}
	w.admin = netip.MustParseAddrPort("[::1]:9748")
	for _, address := range []string{"[::1]:9748", "[::1%lo]:9748", "[::1%1]:9748"} { // the zone is of no account to the kernel
		if err := w.control(t.Context(), "tcp", address, nil); !errors.Is(err, errAdmin) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
