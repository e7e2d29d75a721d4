package authority

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// original returns the data of a Secret before a rotation.
func original(t *testing.T, a fleetv1.Authority) map[string][]byte {
	t.Helper()
	pair, err := (*pki.Keys)(nil).Generate(Purpose(a), now)
	testenv.Must(t, err)
	return pair.Data()
}

func TestStages(t *testing.T) {
	for _, a := range All() {
		before := original(t, a)
		testenv.Must(t, Check(a, before))
		c, err := Generate(a, before[pki.CertificateKey], "", now)
		testenv.Must(t, err)
		for _, stage := range []Stage{Old, Both, Reissued, New} {
			data := map[string][]byte{pki.CertificateKey: c.Certificates(stage), pki.PrivateKeyKey: before[pki.PrivateKeyKey]}
			if key := c.Key(stage); key != nil {
				data[pki.PrivateKeyKey] = key
			}
			if got := c.StageOf(data); got != stage {
				t.Errorf("%s: stage %d is taken for %d", a, stage, got)
			}
			if a == fleetv1.ServiceAccountKey {
				continue
			}
			ca, err := pki.ParseCA(data[pki.CertificateKey], data[pki.PrivateKeyKey])
			testenv.Must(t, err)
			if !same(ca.Certificate.PublicKey, ca.Key.Public()) {
				t.Errorf("%s at stage %d: the first certificate does not belong to the key", a, stage)
			}
		}
		if !bytes.Equal(c.Certificates(Old), before[pki.CertificateKey]) {
			t.Errorf("%s: a Secret that gets the old certificate again differs from before", a)
		}
		edited := map[string][]byte{pki.CertificateKey: append(bytes.Clone(c.New.Certificate), c.New.Certificate...)}
		if got := c.StageOf(edited); got != Unknown {
			t.Errorf("%s: a Secret that someone else has changed is taken for stage %d", a, got)
		}
		if Fingerprint(a, c.Old) == Fingerprint(a, c.New.Certificate) || !strings.HasPrefix(Fingerprint(a, c.Old), "sha256:") {
			t.Errorf("%s: fingerprints %s and %s", a, Fingerprint(a, c.Old), Fingerprint(a, c.New.Certificate))
		}
	}
}

func TestGenerateLikeTheOldOne(t *testing.T) {
	const years = 3 * 365 * 24 * time.Hour
	pair, err := (*pki.Keys)(nil).GenerateUntil(pki.ClusterCA, now, now.Add(years))
	testenv.Must(t, err)
	for chosen, want := range map[pki.KeyAlgorithm]pki.KeyAlgorithm{"": pki.ECDSA, pki.ECDSAP384: pki.ECDSAP384} {
		later := now.Add(years / 2)
		c, err := Generate(fleetv1.ClusterCA, pair.Certificate, chosen, later)
		testenv.Must(t, err)
		got, err := cert.ParseCertsPEM(c.New.Certificate)
		testenv.Must(t, err)
		if pki.AlgorithmOf(got[0]) != want || got[0].NotAfter.Before(later.Add(years)) {
			t.Errorf("with algorithm %q: %s, until %s", chosen, pki.AlgorithmOf(got[0]), got[0].NotAfter)
		}
	}
}

func TestCheck(t *testing.T) {
	own, other := original(t, fleetv1.ClusterCA), original(t, fleetv1.ClusterCA)
	root, err := pki.ParseCA(own[pki.CertificateKey], own[pki.PrivateKeyKey])
	testenv.Must(t, err)
	leaf, err := root.Issue(pki.Request{CommonName: "x", Validity: time.Hour}, now)
	testenv.Must(t, err)
	for _, tt := range []struct {
		reason    string
		authority fleetv1.Authority
		crt, key  []byte
		want      string
	}{
		{"users keep the key", fleetv1.ClusterCA, own[pki.CertificateKey], nil, "no private key"},
		{"a chain", fleetv1.ClusterCA, append(bytes.Clone(own[pki.CertificateKey]), other[pki.CertificateKey]...), own[pki.PrivateKeyKey], "it has 2"},
		{"a key of another CA", fleetv1.EtcdCA, own[pki.CertificateKey], other[pki.PrivateKeyKey], "does not belong"},
		{"not a CA", fleetv1.ClusterCA, leaf.Certificate, leaf.Key, "not the certificate of a CA"},
		{"a certificate instead of a key", fleetv1.ServiceAccountKey, []byte("-----BEGIN X-----\nAAAA\n-----END X-----\n"), own[pki.PrivateKeyKey], "no public key"},
	} {
		err := Check(tt.authority, map[string][]byte{pki.CertificateKey: tt.crt, pki.PrivateKeyKey: tt.key})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.reason, err, tt.want)
		}
	}
}

func TestSignedBy(t *testing.T) {
	data := original(t, fleetv1.ServiceAccountKey)
	key, err := public(data[pki.CertificateKey])
	testenv.Must(t, err)
	sum, err := publicSum(key)
	testenv.Must(t, err)
	token := func(kid string) string {
		header, err := json.Marshal(map[string]string{"alg": "ES256", "kid": kid})
		testenv.Must(t, err)
		return base64.RawURLEncoding.EncodeToString(header) + ".e30.c2ln"
	}
	for text, want := range map[string]bool{
		token(base64.RawURLEncoding.EncodeToString(sum[:])): true, token("other"): false, "": false, "no.token": false,
	} {
		if SignedBy(text, data[pki.CertificateKey]) != want {
			t.Errorf("token %q: want %t", text, want)
		}
	}
}
