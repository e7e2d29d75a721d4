package credentials

import (
	"bytes"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// smallOnly is a cache without the data of large Secrets, like that of the manager.
type smallOnly struct{ client.Reader }

func (s smallOnly) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	err := s.Reader.Get(ctx, key, obj, o...)
	secret, ok := obj.(*corev1.Secret)
	if ok && len(secret.Data["junk"]) > 0 {
		secret.Data = nil
	}
	return err
}

// Tenants who can write the Secrets of a cluster can remove or add data.
func TestSecretsThatTenantsChange(t *testing.T) {
	cases := []struct {
		reason  string
		purpose pki.Purpose
		data    func(before map[string][]byte) map[string][]byte
		renewed bool   // the kubeconfig is renewed
		fails   string // part of the error
	}{
		{reason: "no data in the kubeconfig", purpose: pki.Kubeconfig, renewed: true, data: func(map[string][]byte) map[string][]byte { return nil }},
		{
			reason: "only another key in the kubeconfig", purpose: pki.Kubeconfig, renewed: true,
			data: func(map[string][]byte) map[string][]byte { return map[string][]byte{"junk": []byte("x")} },
		},
		{reason: "a kubeconfig without content", purpose: pki.Kubeconfig, renewed: true, data: func(map[string][]byte) map[string][]byte {
			return map[string][]byte{pki.KubeconfigKey: []byte("null")}
		}},
		{reason: "a kubeconfig and other data", purpose: pki.Kubeconfig, data: enlarged},
		{reason: "a CA and other data", purpose: pki.ClusterCA, data: enlarged},
		{reason: "the etcd CA and other data", purpose: pki.EtcdCA, data: enlarged},
		{
			reason: "a CA without data", purpose: pki.ClusterCA, fails: "c-ca has no data",
			data: func(map[string][]byte) map[string][]byte { return nil },
		},
		{
			reason: "an invalid CA", purpose: pki.ClusterCA, fails: "c-ca",
			data: func(map[string][]byte) map[string][]byte {
				return map[string][]byte{pki.CertificateKey: []byte("x"), pki.PrivateKeyKey: []byte("y")}
			},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b := newBench(t)
			provide := func() error {
				_, err := b.take(t.Context(), "certificates", "kubeconfig")
				return err
			}
			testenv.Must(t, provide())
			before := b.secret(t, pki.Kubeconfig).Data[pki.KubeconfigKey]
			secret := b.secret(t, tc.purpose)
			secret.Data = tc.data(secret.Data)
			testenv.Must(t, b.API.Update(t.Context(), secret))
			b.Secrets = SecretReader{Cached: smallOnly{b.Client}, Live: b.Live}
			err := provide()
			if (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("error %v, want %q", err, tc.fails)
			}
			after := b.secret(t, pki.Kubeconfig).Data[pki.KubeconfigKey]
			if _, err := pki.KubeconfigExpiry(after); err != nil || bytes.Equal(before, after) == tc.renewed {
				t.Errorf("it was renewed: %t, want %t; error %v", !bytes.Equal(before, after), tc.renewed, err)
			}
			if b.API.Writes = nil; tc.fails == "" && (provide() != nil || len(b.API.Writes) > 0) {
				t.Errorf("writes %q in the next round", b.API.Writes)
			}
		})
	}
}

func enlarged(before map[string][]byte) map[string][]byte {
	before["junk"] = []byte("x")
	return before
}

// Secrets in the cache cost no request.
func TestSecretsAreReadFromTheCache(t *testing.T) {
	b := newBench(t)
	b.Secrets = SecretReader{Cached: b.Client, Live: b.Live}
	for range 2 {
		if _, err := b.take(t.Context(), "certificates", "kubeconfig"); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.API.LiveReads) != 0 {
		t.Errorf("%d reads past the cache", len(b.API.LiveReads))
	}
}
