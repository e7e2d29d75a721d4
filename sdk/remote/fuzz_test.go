package remote

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// Whatever kubeconfig a tenant writes: its configuration reads no file and runs no program, uses TLS with one server and
// only the data in the kubeconfig, is deterministic, and an error does not quote it.
func FuzzKubeconfig(f *testing.F) {
	const head, tail = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: 'https://10.0.0.1:6443'", "}}]\nusers: [{name: u, user: {"
	for _, c := range []struct{ cluster, user string }{
		{"", "token: secret-secret"}, {", certificate-authority-data: eA==", "client-certificate-data: eA==, client-key-data: eA=="}, {", certificate-authority: /etc/passwd", ""}, {"", "tokenFile: /var/run/secrets/token"}, {"", "client-certificate: /a, client-key: /b"}, {"", "exec: {command: sh, args: [-c, id], apiVersion: client.authentication.k8s.io/v1}"},
		{"", "auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}"}, {", proxy-url: 'http://169.254.169.254'", ""}, {", proxy-url: ':'", ""}, {", proxy-url: 'socks5://u:secret-secret@h'", ""}, {", insecure-skip-tls-verify: true, tls-server-name: é", ""}, {", disable-compression: true", "username: u, password: secret-secret, as: root, as-groups: [system:masters], as-user-extra: {a: [b]}"},
		{", extensions: [{name: x, extension: {a: b}}]", "token: &a secret-secret, x: *a"}, {", server: 'http://10.0.0.1'", ""}, {", server: 'HTTPS://x'", ""}, {", server: 'https://'", ""}, {", server: x", ""}, {", certificate-authority-data: [1]", "token: 1"}, {"", "exec: null, auth-provider: null, tokenFile: ''"},
	} {
		f.Add([]byte(head + c.cluster + tail + c.user + "}}]\n"))
	}
	for _, text := range []string{"", "{}", "null", "[]", "\x00", "current-context: c", "contexts: [{name: '', context: {}}]\nclusters: [{name: '', cluster: {server: https://x}}]", "{\"kind\":\"Config\",\"apiVersion\":\"v1\",\"users\":[{\"name\":\"u\"}]}", "kind: Secret\napiVersion: v1\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 32<<10 {
			t.Skip("long")
		}
		config, err := configOf(text, Policy{})
		if err != nil {
			if strings.Contains(err.Error(), "secret-secret") {
				t.Errorf("the error quotes a secret: %v", err)
			}
			return
		}
		if config.ExecProvider != nil || config.AuthProvider != nil || config.AuthConfigPersister != nil || config.BearerTokenFile != "" || config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" {
			t.Errorf("it reads files or runs programs: %s", config)
		}
		if config.Transport != nil || config.WrapTransport != nil || config.Dial != nil {
			t.Errorf("it has a transport: %s", config)
		}
		server, err := url.Parse(config.Host)
		if err != nil || server.Scheme != "https" {
			t.Errorf("its server is %q", config.Host)
		}
		again, err := configOf(text, Policy{})
		if err != nil || (config.Proxy == nil) != (again.Proxy == nil) {
			t.Fatalf("the second time: %v", err)
		}
		config.Proxy, again.Proxy = nil, nil
		if diff := cmp.Diff(*config, *again, cmp.AllowUnexported(rest.Config{})); diff != "" {
			t.Errorf("the second time (-first +second):\n%s", diff)
		}
		everything := Policy{Exec: true, Files: true, HTTP: true, Loopback: true, LinkLocal: true}
		if _, err := configOf(text, everything); err != nil {
			t.Errorf("allowed by the empty policy, but not by one that allows everything: %v", err)
		}
	})
}

// An address is allowed if its IPv4 equivalent is; those of this host and link-local ones are not.
func FuzzAddress(f *testing.F) {
	for _, text := range []string{"127.0.0.1", "::1", "0.0.0.0", "::", "169.254.169.254", "fe80::1%eth0", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "fd00:ec2::254", "224.0.0.1", "255.255.255.255", "10.0.0.1", "2001:db8::1", "100.100.100.200", "::ffff:169.254.169.254%x", "64:ff9b:1::7f00:1", "2002:7f00:1::", "::7f00:1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return
		}
		rejected := Policy{}.address(ip)
		if bare := ip.Unmap().WithZone(""); (bare.IsLoopback() || bare.IsUnspecified() || bare.IsLinkLocalUnicast() || bare.IsMulticast()) && rejected == nil {
			t.Errorf("%s is allowed", ip)
		}
		if ip.Is4() {
			raw := ip.As4()
			mapped := netip.AddrFrom16(ip.As16())
			translated := netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 12: raw[0], 13: raw[1], 14: raw[2], 15: raw[3]})
			for _, other := range []netip.Addr{mapped, translated} {
				if (Policy{}.address(other) == nil) != (rejected == nil) {
					t.Errorf("%s: %v, but %s: %v", ip, rejected, other, Policy{}.address(other))
				}
			}
		}
		if err := (Policy{Loopback: true, LinkLocal: true}).address(ip); err != nil {
			t.Errorf("%s is rejected by a policy that allows everything: %v", ip, err)
		}
	})
}
