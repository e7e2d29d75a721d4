package credentials

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// kind returns the kind of the key in a PEM certificate or public key.
func kind(t *testing.T, pem []byte) string {
	t.Helper()
	keys, err := keyutil.ParsePublicKeysPEM(pem)
	if err != nil {
		t.Fatal(err)
	}
	switch k := keys[0].(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA-%d", k.N.BitLen())
	case *ecdsa.PublicKey:
		return "ECDSA-" + strings.ReplaceAll(k.Params().Name, "-", "")
	}
	return "unknown"
}

func TestKeysAreOfTheChosenAlgorithm(t *testing.T) {
	choose := func(o client.Object, algorithm string) {
		o.SetAnnotations(map[string]string{pki.AlgorithmAnnotation: algorithm})
	}
	tests := []struct {
		reason  string
		manager pki.KeyAlgorithm
		choose  func(b *bench)
		want    string
	}{
		{reason: "the default", want: "ECDSA-P256"},
		{reason: "chosen by a flag", manager: pki.ECDSAP384, want: "ECDSA-P384"},
		{reason: "chosen by the Cluster", manager: pki.ECDSAP384, choose: func(b *bench) { choose(b.Cluster, "RSA-2048") }, want: "RSA-2048"},
		{reason: "chosen by a class, through the control plane", choose: func(b *bench) { choose(b.Cluster, "RSA-4096"); choose(b.KCP, "ECDSA-P384") }, want: "ECDSA-P384"},
		{reason: "chosen by the spec, which takes precedence", choose: func(b *bench) {
			choose(b.KCP, "ECDSA-P384")
			b.KCP.Spec.KubeadmConfigSpec.ClusterConfiguration.EncryptionAlgorithm = "RSA-3072"
		}, want: "RSA-3072"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			b := newBench(t)
			b.Keys = pki.NewKeys(tt.manager)
			if tt.choose != nil {
				tt.choose(b)
			}
			if _, err := b.take(t.Context(), "certificates"); err != nil {
				t.Fatal(err)
			}
			if _, err := b.take(t.Context(), "kubeconfig"); err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.RESTConfigFromKubeConfig(b.secret(t, pki.Kubeconfig).Data[pki.KubeconfigKey])
			if err != nil {
				t.Fatal(err)
			}
			got := map[pki.Purpose]string{pki.Kubeconfig: kind(t, config.CertData)}
			want := map[pki.Purpose]string{pki.Kubeconfig: tt.want}
			for _, purpose := range []pki.Purpose{pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount} {
				got[purpose], want[purpose] = kind(t, b.secret(t, purpose).Data[pki.CertificateKey]), tt.want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("keys, -want +got:\n%s", diff)
			}
			all, err := cert.ParseCertsPEM(b.secret(t, pki.ClusterCA).Data[pki.CertificateKey])
			if err != nil || all[0].KeyUsage&x509.KeyUsageCertSign == 0 {
				t.Errorf("the CA cannot sign: %v", err)
			}
		})
	}
}

// CAs are valid for as long as the spec says, ten years by default.
func TestCAValidity(t *testing.T) {
	const day = 24 * time.Hour
	for days, validity := range map[int32]time.Duration{0: 3650 * day, 90: 90 * day} {
		b := newBench(t)
		b.KCP.Spec.KubeadmConfigSpec.ClusterConfiguration.CACertificateValidityPeriodDays = days
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
		want := b.API.Clock.Now().UTC().Add(validity)
		for _, purpose := range []pki.Purpose{pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA} {
			all, err := cert.ParseCertsPEM(b.secret(t, purpose).Data[pki.CertificateKey])
			if err != nil || !all[0].NotAfter.Equal(want.Truncate(time.Second)) {
				t.Errorf("%d days: %s is valid until %v, want %v, error %v", days, purpose, all[0].NotAfter, want, err)
			}
		}
	}
}

func TestUnknownAlgorithm(t *testing.T) {
	b := newBench(t)
	b.Cluster.Annotations = map[string]string{pki.AlgorithmAnnotation: "DSA"}
	_, err := b.take(t.Context(), "certificates")
	if err == nil || len(b.API.Writes) != 0 {
		t.Fatalf("error %v, writes %q; want an error and none", err, b.API.Writes)
	}
	available := condition.Get(b.KCP, controlplanev1.CertificatesAvailableV1Beta1Condition)
	want := "secret ns/c-ca: generating keys: annotation cluster.x-k8s.io/key-algorithm of Cluster ns/c: " +
		"unknown key algorithm: use one of ECDSA-P256, ECDSA-P384, RSA-2048, RSA-3072, RSA-4096"
	if available == nil || available.Status != "False" || available.Reason != controlplanev1.CertificatesGenerationFailedV1Beta1Reason || available.Message != want {
		t.Errorf("CertificatesAvailable is %+v, want it false because\n%s", available, want)
	}
	delete(b.Cluster.Annotations, pki.AlgorithmAnnotation)
	if _, err := b.take(t.Context(), "certificates"); err != nil || len(b.API.Writes) != 4 {
		t.Errorf("without it: error %v, writes %q", err, b.API.Writes)
	}
	b.Cluster.Annotations = map[string]string{pki.AlgorithmAnnotation: "DSA"}
	if _, err := b.take(t.Context(), "certificates"); err != nil {
		t.Errorf("nothing is generated, so the annotation must not matter: %v", err)
	}
}
