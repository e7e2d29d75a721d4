package testenv

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

// ServingCertificate returns a folder with a certificate for localhost and its key, tls.crt and tls.key, as the flag --webhook-cert-dir
// of managers requires. The CA is not kept.
func ServingCertificate(t testing.TB) string {
	t.Helper()
	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	Must(t, err)
	pair, err := ca.Issue(pki.Request{CommonName: "localhost", DNSNames: []string{"localhost"}, Validity: time.Hour}, time.Now())
	Must(t, err)
	dir := t.TempDir()
	Must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), pair.Certificate, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), pair.Key, 0o600))
	return dir
}
