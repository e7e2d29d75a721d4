package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestPolicyOfFlags(t *testing.T) {
	for name, c := range map[string]struct {
		reason     string
		args       []string
		management string
		want       Policy
		err        string
	}{
		"Default":       {"nothing is allowed", nil, "https://10.96.0.1:443", Policy{}, ""},
		"All":           {"everything that is named is", []string{"--workload-cluster-allow=exec,files", "--workload-cluster-allow=http,loopback,link-local"}, "https://10.96.0.1:443", Policy{true, true, true, true, true}, ""},
		"LocalNumber":   {"a manager that reaches the management cluster on the loopback interface shares it with workload clusters", nil, "https://127.0.0.1:6443", Policy{Loopback: true}, ""},
		"LocalSix":      {"also over IPv6", nil, "https://[::1]:6443", Policy{Loopback: true}, ""},
		"LocalName":     {"also by name", nil, "localhost:8080", Policy{Loopback: true}, ""},
		"LocalNoScheme": {"also without a scheme", nil, "127.0.0.1:8080", Policy{Loopback: true}, ""},
		"LocalAddress":  {"also at another address of this host", nil, "https://" + ownAddress(t) + ":6443", Policy{Loopback: true}, ""},
		"Unknown":       {"a typing error is reported", []string{"--workload-cluster-allow=execs"}, "https://10.96.0.1:443", Policy{}, `invalid --workload-cluster-allow: "execs" must be one of exec, files, http, loopback and link-local`},
	} {
		t.Run(name, func(t *testing.T) {
			f, fs := &Flags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
			f.AddTo(fs)
			if err := fs.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			got, err := f.Policy(&rest.Config{Host: c.management})
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff([]any{c.want, c.err}, []any{got, text}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
			if v := f.Validate(); (v != nil) != (err != nil) {
				t.Errorf("%s: validation returns %v", c.reason, v)
			}
		})
	}
}

// ownAddress is one of this host's, not of the loopback interface if there is another one.
func ownAddress(t *testing.T) string {
	t.Helper()
	own, err := net.InterfaceAddrs()
	if err != nil || len(own) == 0 {
		t.Skipf("this host has no addresses: %v", err)
	}
	address := "127.0.0.1"
	for _, a := range own {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() && !prefix.Addr().IsLoopback() {
			address = prefix.Addr().String()
		}
	}
	return address
}

func TestAddresses(t *testing.T) {
	for address, allow := range map[string]string{
		"10.0.0.1": "", "192.168.1.1": "", "8.8.8.8": "", "2001:db8::1": "", "fd00::1": "", "100.100.100.201": "",
		"127.0.0.1": "loopback", "127.8.8.8": "loopback", "::1": "loopback", "0.0.0.0": "loopback", "::": "loopback", "::ffff:127.0.0.1": "loopback",
		"169.254.169.254": "link-local", "::ffff:169.254.169.254": "link-local", "64:ff9b::a9fe:a9fe": "link-local", "fe80::1": "link-local", "fe80::1%eth0": "link-local",
		"224.0.0.1": "link-local", "ff02::1": "link-local", "255.255.255.255": "link-local", "fd00:ec2::254": "link-local", "100.100.100.200": "link-local",
	} {
		t.Run(address, func(t *testing.T) {
			err := Policy{}.address(netip.MustParseAddr(address))
			var refused *RejectedError
			if errors.As(err, &refused); (refused == nil) != (allow == "") || refused != nil && refused.Allow != allow {
				t.Errorf("got %v, want that %q allows it", err, allow)
			}
			if err := (Policy{Loopback: true, LinkLocal: true}).address(netip.MustParseAddr(address)); err != nil {
				t.Errorf("got %v, want that it is allowed", err)
			}
		})
	}
}

// TestDialing uses names, which mean something only when they are resolved.
func TestDialing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		conn, err := Policy{}.guarded().DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if _, ok := errors.AsType[*RejectedError](err); !ok {
			t.Errorf("%s: got %v, want that it is rejected", host, err)
		}
		if conn != nil {
			_ = conn.Close()
		}
	}
	// The same applies to code that opens its own connections.
	if conn, err := (Policy{}).netDialer(&rest.Config{Host: "https://workload.example"}).Dial("tcp", net.JoinHostPort("127.0.0.1", port)); !IsRejected(err) {
		if conn != nil {
			_ = conn.Close()
		}
		t.Errorf("the dialer of a cluster connects to the manager: %v", err)
	}
	conn, err := Policy{Loopback: true}.guarded().DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		t.Fatalf("it must be allowed: %v", err)
	}
	_ = conn.Close()
}

// What the policy forbids is stated as such after it went through the layers of clients.
func TestLoopbackIsRejected(t *testing.T) {
	server := newAPI(t, serving)
	w := newWorld(t)
	o := w.clusters.options
	o.Policy, o.dial = Policy{}, nil
	w.clusters = New(o)
	t.Cleanup(w.clusters.stop)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	want := "not connected to the workload cluster default/blue: rejected: its server is at an address of the manager itself (only allowed with --workload-cluster-allow=loopback)"
	if diff := cmp.Diff(want, w.refusal(blue)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if asked := server.asked(""); len(asked) != 0 {
		t.Errorf("the server was asked: %q", asked)
	}
}

// A proxy that the kubeconfig names is subject to the policy, one of the environment is not.
func TestProxies(t *testing.T) {
	config, err := configOf([]byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],
		"clusters":[{"name":"c","cluster":{"server":"https://example.com:6443","proxy-url":"http://10.1.2.3:3128"}}]}`), Policy{})
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := config.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "example.com:6443"}})
	if err != nil || proxy.Host != "10.1.2.3:3128" {
		t.Errorf("got %v and %v, want the kubeconfig's proxy", proxy, err)
	}
	if own := ownProxy(config); own != "" {
		t.Errorf("%s must not bypass the policy", own)
	}
	var asked []string
	guarded := func(_ context.Context, _, address string) (net.Conn, error) {
		asked = append(asked, address)
		return nil, errors.New("guarded")
	}
	_, _ = dialer(config, guarded)(t.Context(), "tcp", "10.1.2.3:3128")
	if diff := cmp.Diff([]string{"10.1.2.3:3128"}, asked); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAllowed: the same kubeconfigs work if the policy allows them.
func TestAllowed(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		policy Policy
		change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)
		used   func(*rest.Config) bool
	}{
		"Exec": {Policy{Exec: true, Loopback: true}, func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			credential, err := json.Marshal(map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": map[string]string{
				"token": "t", "clientCertificateData": string(u.ClientCertificateData), "clientKeyData": string(u.ClientKeyData),
			}})
			if err != nil {
				t.Fatal(err)
			}
			u.ClientCertificateData, u.ClientKeyData = nil, nil
			u.Exec = &clientcmdapi.ExecConfig{
				APIVersion: "client.authentication.k8s.io/v1", Command: "echo", Args: []string{string(credential)}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
			}
		}, func(c *rest.Config) bool { return c.ExecProvider != nil }},
		"Files": {Policy{Files: true, Loopback: true}, func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.TokenFile = token
		}, func(c *rest.Config) bool { return c.BearerTokenFile == token }},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPI(t, serving)
			w := newWorld(t)
			o := w.clusters.options
			o.Policy, o.dial = c.policy, nil
			w.clusters = New(o)
			t.Cleanup(w.clusters.stop)
			w.listen()
			w.secret(blue, server.altered(t, c.change))
			if cluster := w.connected(blue); !c.used(cluster.Config) {
				t.Error("it is connected without the allowed feature")
			}
			if !strings.Contains(server.authorization(), "Bearer t") {
				t.Errorf("the token was not used: %q", server.authorization())
			}
		})
	}
}

// TestRateOfRequests: all clients of a connection share the limits of the flags; without flags there are none.
func TestRateOfRequests(t *testing.T) {
	for _, tc := range []struct {
		reason string
		args   []string
		want   float32
		err    string
	}{
		{"no limit by default", nil, 0, ""},
		{"both limits", []string{"--clustercachetracker-client-qps=50", "--clustercachetracker-client-burst=60"}, 50, ""},
		{"as in v1.14", []string{"--clustercache-client-qps=50", "--clustercache-client-burst=60", "--clustercache-concurrency=5"}, 50, ""},
		{"a burst of nothing would allow nothing", []string{"--clustercachetracker-client-qps=50", "--clustercachetracker-client-burst=0"}, 50, "must be positive"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f, fs := &Flags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
			f.AddTo(fs)
			if err := fs.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			if err := f.Validate(); (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			config := &rest.Config{}
			Options{QPS: f.QPS, Burst: f.Burst}.limit(config)
			got := float32(0)
			if config.RateLimiter != nil {
				got = config.RateLimiter.QPS()
			}
			if got != tc.want || config.QPS >= 0 {
				t.Errorf("a limit of %v, and %v per client; want %v, and none per client", got, config.QPS, tc.want)
			}
		})
	}
}
