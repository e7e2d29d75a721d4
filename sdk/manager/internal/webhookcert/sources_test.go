package webhookcert

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// writePair writes a new certificate into a directory, as an issuer of files does, and returns what was written.
func writePair(t *testing.T, dir string) []byte {
	t.Helper()
	b, _ := mustNext(t, testRotation, bundle{}, time.Now())
	data, err := b.data()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{servingKeyKey, servingCertKey} {
		if err := os.WriteFile(filepath.Join(dir, name), data[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b.serving.Certificate[0]
}

func TestDirectoryReloads(t *testing.T) {
	dir := t.TempDir()
	first := writePair(t, dir)
	d, found, err := OpenDirectory(dir, servingCertKey, servingKeyKey)
	if err != nil || !found {
		t.Fatalf("found %t, %v", found, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- d.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	if c, err := d.GetCertificate(nil); err != nil || !bytes.Equal(c.Certificate[0], first) {
		t.Fatalf("the files' certificate is not served: %v", err)
	}
	second := writePair(t, dir)
	renewed := make(chan struct{})
	go func() {
		for {
			if c, _ := d.GetCertificate(nil); bytes.Equal(c.Certificate[0], second) {
				close(renewed)
				return
			}
			// Serving is polled by handshakes in reality; here politely, until the file watcher has noticed.
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	select {
	case <-renewed:
	case <-time.After(time.Minute):
		t.Fatal("new files were not noticed")
	}
}

func TestOpenDirectory(t *testing.T) {
	tests := map[string]struct {
		reason  string
		files   map[string]string
		wantErr string
	}{
		"empty": {
			reason: "an empty directory means that the certificate is not issued elsewhere",
		},
		"half": {
			reason:  "a certificate without key is an error, and no other one is issued",
			files:   map[string]string{"tls.crt": "x"},
			wantErr: "contains only one of tls.crt and tls.key",
		},
		"unusable": {
			reason:  "unusable files are named",
			files:   map[string]string{"tls.crt": "x", "tls.key": "x"},
			wantErr: "reading tls.crt and tls.key of",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, found, err := OpenDirectory(dir, servingCertKey, servingKeyKey)
			if found {
				t.Errorf("%s: found a certificate", tt.reason)
			}
			if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("%s: got error %v, want %q", tt.reason, err, tt.wantErr)
			}
		})
	}
	if _, found, err := OpenDirectory(filepath.Join(t.TempDir(), "none"), servingCertKey, servingKeyKey); found || err != nil {
		t.Errorf("a directory that does not exist is an empty one: %t, %v", found, err)
	}
}

func TestMemory(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	m := NewMemory(clock, "localhost")
	first, err := m.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Leaf.VerifyHostname("localhost"); err != nil {
		t.Errorf("a manager outside of a cluster is called at localhost: %v", err)
	}
	if again, _ := m.GetCertificate(nil); again != first {
		t.Error("a valid certificate is not issued again")
	}
	clock.SetTime(start.Add(servingValidity - servingRenewal))
	if renewed, err := m.GetCertificate(nil); err != nil || renewed == first {
		t.Errorf("an old certificate is renewed: %v", err)
	}
}

// TestNamesOfFiles: issuers have names of their own for the two files.
func TestNamesOfFiles(t *testing.T) {
	dir := t.TempDir()
	want := writePair(t, dir)
	for from, to := range map[string]string{servingCertKey: "server.pem", servingKeyKey: "server-key.pem"} {
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	d, found, err := OpenDirectory(dir, "server.pem", "server-key.pem")
	if err != nil || !found {
		t.Fatalf("found %t, %v", found, err)
	}
	if c, err := d.GetCertificate(nil); err != nil || !bytes.Equal(c.Certificate[0], want) {
		t.Errorf("the files' certificate is not served: %v", err)
	}
	if _, _, err := OpenDirectory(dir, "server.pem", "other"); err == nil || !strings.Contains(err.Error(), "only one of server.pem and other") {
		t.Errorf("error %v; want the names of the flags", err)
	}
}
