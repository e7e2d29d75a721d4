package credentials

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestKubeconfigIsRenewedInTime(t *testing.T) {
	b := newBench(t)
	steps := func() string {
		t.Helper()
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.take(t.Context(), "kubeconfig"); err != nil {
			t.Fatal(err)
		}
		return string(b.secret(t, pki.Kubeconfig).Data[pki.KubeconfigKey])
	}
	first := steps()
	if !strings.Contains(first, "https://h:1") {
		t.Errorf("the kubeconfig has another server: %s", strings.Split(first, "\n")[4])
	}
	result, err := b.take(t.Context(), "kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	expiry, err := pki.KubeconfigExpiry([]byte(first))
	if err != nil {
		t.Fatal(err)
	}
	if want := expiry.Add(-pki.RenewKubeconfigBefore).Sub(b.API.Clock.Now()); result.After() != want {
		t.Errorf("reconciled again after %s, want %s, when it is due: nothing else may happen until then", result.After(), want)
	}
	b.API.Clock.SetTime(object.Now().Add(180 * 24 * time.Hour))
	if second := steps(); first != second {
		t.Error("it is renewed although more than half a year is left")
	}
	b.API.Clock.SetTime(object.Now().Add(190 * 24 * time.Hour))
	if third := steps(); first == third {
		t.Error("it is not renewed although less than half a year is left")
	}
}

// After a rotation of the CA, the client certificate must be signed by the new CA, and the kubeconfig must trust it.
func TestKubeconfigFollowsTheCA(t *testing.T) {
	newCA := func(names ...string) map[string][]byte {
		t.Helper()
		var pair pki.Pair
		for range names {
			a, err := pki.NewCA("", object.Now())
			if err != nil {
				t.Fatal(err)
			}
			made, err := a.PEM()
			if err != nil {
				t.Fatal(err)
			}
			pair.Certificate, pair.Key = append(made.Certificate, pair.Certificate...), made.Key
		}
		return pair.Data()
	}
	both := newCA("old", "new")
	cases := []struct {
		reason  string
		ca      func(before map[string][]byte) map[string][]byte
		users   bool // the kubeconfig has no controller
		renewed bool
	}{
		{reason: "nothing has changed", ca: func(before map[string][]byte) map[string][]byte { return before }},
		{reason: "another CA", ca: func(map[string][]byte) map[string][]byte { return newCA("new") }, renewed: true},
		{reason: "a new CA and the previous one", ca: func(map[string][]byte) map[string][]byte { return both }, renewed: true},
		{reason: "an additional CA", renewed: true, ca: func(before map[string][]byte) map[string][]byte {
			return map[string][]byte{pki.CertificateKey: append(bytes.Clone(before[pki.CertificateKey]), newCA("new")[pki.CertificateKey]...), pki.PrivateKeyKey: before[pki.PrivateKeyKey]}
		}},
		{reason: "users must renew their own kubeconfigs", users: true, ca: func(map[string][]byte) map[string][]byte { return newCA("new") }},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b := newBench(t)
			read := func() string {
				t.Helper()
				if _, err := b.take(t.Context(), "kubeconfig"); err != nil {
					t.Fatal(err)
				}
				return string(b.secret(t, pki.Kubeconfig).Data[pki.KubeconfigKey])
			}
			if _, err := b.take(t.Context(), "certificates"); err != nil {
				t.Fatal(err)
			}
			before := read()
			if tc.users {
				theirs := b.secret(t, pki.Kubeconfig)
				theirs.OwnerReferences, theirs.Annotations = nil, nil
				testenv.Must(t, b.API.Update(t.Context(), theirs))
			}
			ca := b.secret(t, pki.ClusterCA)
			ca.Data = tc.ca(ca.Data)
			testenv.Must(t, b.API.Update(t.Context(), ca))
			after := read()
			if (before != after) != tc.renewed {
				t.Errorf("it was renewed: %t, want %t", before != after, tc.renewed)
			}
			config, err := clientcmd.Load([]byte(after))
			if err != nil {
				t.Fatal(err)
			}
			if got := config.Clusters["c"].CertificateAuthorityData; tc.renewed && !bytes.Equal(got, ca.Data[pki.CertificateKey]) {
				t.Errorf("it trusts %s", got)
			}
			if b.API.Writes = nil; read() != after || len(b.API.Writes) > 0 {
				t.Error("it is renewed again")
			}
		})
	}
}

// In the second step of a rotation, the other CA signs: the kubeconfig follows before the first one is dropped.
func TestKubeconfigFollowsTheSigner(t *testing.T) {
	b := newBench(t)
	read := func() []byte {
		t.Helper()
		if _, err := b.take(t.Context(), "kubeconfig"); err != nil {
			t.Fatal(err)
		}
		return b.secret(t, pki.Kubeconfig).Data[pki.KubeconfigKey]
	}
	if _, err := b.take(t.Context(), "certificates"); err != nil {
		t.Fatal(err)
	}
	read()
	ca := b.secret(t, pki.ClusterCA)
	old := ca.Data[pki.CertificateKey]
	next, err := pki.NewCA("", object.Now())
	testenv.Must(t, err)
	pair, err := next.PEM()
	testenv.Must(t, err)
	for _, step := range []struct {
		reason string
		data   map[string][]byte
		signer []byte
	}{
		{"the old one signs", map[string][]byte{pki.CertificateKey: append(bytes.Clone(old), pair.Certificate...), pki.PrivateKeyKey: ca.Data[pki.PrivateKeyKey]}, old},
		{"the new one signs", map[string][]byte{pki.CertificateKey: append(bytes.Clone(pair.Certificate), old...), pki.PrivateKeyKey: pair.Key}, pair.Certificate},
		{"only the new one", pair.Data(), pair.Certificate},
	} {
		ca = b.secret(t, pki.ClusterCA)
		ca.Data = step.data
		testenv.Must(t, b.API.Update(t.Context(), ca))
		config, err := clientcmd.Load(read())
		testenv.Must(t, err)
		chain, err := cert.ParseCertsPEM(config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo].ClientCertificateData)
		testenv.Must(t, err)
		signer, err := cert.ParseCertsPEM(step.signer)
		testenv.Must(t, err)
		if err := chain[0].CheckSignatureFrom(signer[0]); err != nil {
			t.Errorf("%s: %v", step.reason, err)
		}
	}
}

// A certificate that is not a CA must not cause a write at each reconcile.
func TestKubeconfigOfAnInvalidCA(t *testing.T) {
	b := newBench(t)
	for range 2 {
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.take(t.Context(), "kubeconfig"); err != nil {
			t.Fatal(err)
		}
		ca := b.secret(t, pki.ClusterCA)
		a, err := pki.CAFrom(ca)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := a.Issue(pki.Request{CommonName: "not a CA", Validity: time.Hour}, object.Now())
		if err != nil {
			t.Fatal(err)
		}
		ca.Data = pair.Data()
		testenv.Must(t, b.API.Update(t.Context(), ca))
		b.API.Writes = nil
	}
	for range 2 {
		_, _ = b.take(t.Context(), "kubeconfig")
	}
	if len(b.API.Writes) > 0 {
		t.Errorf("writes %q, want none", b.API.Writes)
	}
}

// Without the label, controllers that read from the cache would not find the Secret.
func TestTheKubeconfigOfAUserGetsTheLabelOfTheCluster(t *testing.T) {
	b := newBench(t, userSecret(pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: []byte("mine")}))
	b.Secrets = labeled{b.Client}
	if _, err := b.take(t.Context(), "certificates"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"create Secret c-kubeconfig, patch Secret c-kubeconfig", ""} {
		b.API.Writes = nil
		if _, err := b.take(t.Context(), "kubeconfig"); err != nil || strings.Join(b.API.Writes, ", ") != want {
			t.Errorf("writes %q, error %v, want %q", b.API.Writes, err, want)
		}
	}
	if got := b.secret(t, pki.Kubeconfig); string(got.Data[pki.KubeconfigKey]) != "mine" || len(got.OwnerReferences) != 0 {
		t.Errorf("the kubeconfig was changed: %+v", got.ObjectMeta)
	}
}
