package certs_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/standalone/internal/certs"
)

const day = 24 * time.Hour

func ensure(t *testing.T, dir string, now time.Time, hosts ...string) certs.Files {
	t.Helper()
	files, err := certs.Ensure(dir, hosts, now)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// contents reads every file of the folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(path)] = string(content)
	}
	return out
}

func TestEnsure(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		reason string
		later  time.Duration
		hosts  []string
		damage func(t *testing.T, f certs.Files)
		want   []string // files that change
	}{
		{reason: "nothing is written without a change", later: 200 * day, hosts: []string{"127.0.0.1"}},
		{reason: "certificates that are about to expire are reissued with the same keys", later: 300 * day, hosts: []string{"127.0.0.1"}, want: []string{"admin.crt", "serving.crt"}},
		{reason: "so are expired ones", later: 4000 * day, hosts: []string{"127.0.0.1"}, want: []string{"admin.crt", "serving.crt"}},
		{reason: "a new address needs a new serving certificate", hosts: []string{"127.0.0.1", "192.0.2.7"}, want: []string{"serving.crt"}},
		{
			reason: "a CA certificate that was lost between two writes is reissued from its key, and remains valid for what it signed",
			hosts:  []string{"127.0.0.1"},
			damage: func(t *testing.T, f certs.Files) { remove(t, f.CACert) },
			want:   []string{"ca.crt"},
		},
		{
			reason: "a lost serving key is regenerated with its certificate",
			hosts:  []string{"127.0.0.1"},
			damage: func(t *testing.T, f certs.Files) { remove(t, f.ServingKey) },
			want:   []string{"serving.crt", "serving.key"},
		},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first := ensure(t, dir, start, "127.0.0.1")
			before := contents(t, dir)
			if test.damage != nil {
				test.damage(t, first)
			}
			now := start.Add(test.later)
			files := ensure(t, dir, now, test.hosts...)
			var changed []string
			for name, content := range contents(t, dir) {
				if before[name] != content {
					changed = append(changed, name)
				}
			}
			if diff := cmp.Diff(test.want, slices.Sorted(slices.Values(changed))); diff != "" {
				t.Errorf("changed files (-want +got):\n%s", diff)
			}
			verify(t, files, now, test.hosts)
		})
	}
}

// verify checks what clients and server will check.
func verify(t *testing.T, f certs.Files, now time.Time, hosts []string) {
	t.Helper()
	ca, err := os.ReadFile(f.CACert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	for _, host := range hosts {
		check(t, f.ServingCert, f.ServingKey, x509.VerifyOptions{
			Roots: roots, CurrentTime: now, DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
	}
	admin := check(t, f.AdminCert, f.AdminKey, x509.VerifyOptions{
		Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if diff := cmp.Diff([]string{"system:masters"}, admin.Subject.Organization); diff != "" {
		t.Errorf("the admin's groups (-want +got):\n%s", diff)
	}
	for _, path := range []string{f.CAKey, f.ServingKey, f.AdminKey, f.ServiceAccountKey} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
	}
}

func check(t *testing.T, certPath, keyPath string, options x509.VerifyOptions) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certPath, keyPath)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pair.Leaf.Verify(options); err != nil {
		t.Errorf("%s: %v", filepath.Base(certPath), err)
	}
	return pair.Leaf
}

func TestEnsureRejects(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reason string
		damage func(t *testing.T, f certs.Files)
		want   func(f certs.Files) string
	}{
		{
			reason: "a missing CA key is not replaced, which would invalidate all kubeconfigs",
			damage: func(t *testing.T, f certs.Files) { remove(t, f.CAKey) },
			want: func(f certs.Files) string {
				return f.CAKey + " is missing, but " + f.CACert + " exists: restore the key, or remove the certificate and distribute the new kubeconfig to clients"
			},
		},
		{
			reason: "the error names a damaged key",
			damage: func(t *testing.T, f certs.Files) {
				if err := os.WriteFile(f.ServiceAccountKey, []byte("nonsense"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			want: func(f certs.Files) string {
				return "read the key " + f.ServiceAccountKey + ": error reading private key file " + f.ServiceAccountKey +
					": data does not contain a valid RSA or ECDSA private key"
			},
		},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files := ensure(t, dir, time.Unix(0, 0), "127.0.0.1")
			test.damage(t, files)
			_, err := certs.Ensure(dir, nil, time.Unix(0, 0))
			if err == nil || err.Error() != test.want(files) {
				t.Errorf("got %v\nwant %s", err, test.want(files))
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
