package get

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

var (
	issued = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	name   = types.NamespacedName{Namespace: "ns", Name: "c1"}
)

// secrets returns the Secrets of a cluster. Without key, its CA cannot issue certificates.
func secrets(t *testing.T, key bool) (ca *pki.CA, list []client.Object) {
	t.Helper()
	ca, err := pki.NewCA(pki.ECDSA, issued)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := pki.NewKubeconfig("c1", "https://c1.example.com:6443", ca, issued)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.PEM()
	if err != nil {
		t.Fatal(err)
	}
	if !key {
		pair.Key = nil
	}
	return ca, []client.Object{
		pki.NewSecret(name, pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: admin}, nil), pki.NewSecret(name, pki.ClusterCA, pair.Data(), nil),
	}
}

func kubeconfigOptions(streams *iostreams.Streams, objects ...client.Object) *KubeconfigOptions {
	c := fake.NewClientBuilder().WithObjects(objects...).Build()
	return &KubeconfigOptions{
		IO: streams, Clock: clocktesting.NewFakePassiveClock(issued), ClusterName: "c1", Namespace: "ns",
		Connect: func(management.Kubeconfig) (*management.Cluster, error) { return &management.Cluster{Client: c}, nil },
	}
}

// TestUser checks the issued certificate: its names, its validity, its issuer; and that the admin's credentials are not printed.
func TestUser(t *testing.T) {
	ca, objects := secrets(t, true)
	streams, buffers := iostreams.Test()
	opts := kubeconfigOptions(streams, objects...)
	opts.User, opts.Groups, opts.TTL = "jane", []string{"developers", "ops"}, 10*time.Hour
	if err := runKubeconfig(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(buffers.Out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	context := config.Contexts[config.CurrentContext]
	if len(config.AuthInfos) != 1 || context.AuthInfo != "jane" || config.Clusters[context.Cluster].Server != "https://c1.example.com:6443" {
		t.Fatalf("context %+v, %d users", context, len(config.AuthInfos))
	}
	block, _ := pem.Decode(config.AuthInfos["jane"].ClientCertificateData)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(certificate.Subject.Organization) // They are a set.
	if certificate.Subject.CommonName != "jane" || !cmp.Equal(certificate.Subject.Organization, opts.Groups) || !certificate.NotAfter.Equal(issued.Add(opts.TTL)) {
		t.Errorf("subject %s, valid until %s", certificate.Subject, certificate.NotAfter)
	}
	if err := certificate.CheckSignatureFrom(ca.Certificate); err != nil {
		t.Error(err)
	}
	if message := buffers.Err.String(); !strings.Contains(message, "valid until 2030-01-02T22:00:00Z") || strings.Contains(message, "Warning") {
		t.Errorf("message: %s", message)
	}
}

func TestMastersAreWarnedAbout(t *testing.T) {
	_, objects := secrets(t, true)
	streams, buffers := iostreams.Test()
	opts := kubeconfigOptions(streams, objects...)
	opts.User, opts.Groups, opts.TTL = "jane", []string{masters}, time.Hour
	if err := runKubeconfig(t.Context(), opts); err != nil || !strings.Contains(buffers.Err.String(), "Group system:masters has all permissions") {
		t.Errorf("error %v, message: %s", err, buffers.Err)
	}
}

func TestUserFails(t *testing.T) {
	tests := []struct {
		reason string
		key    bool
		ttl    time.Duration
		drop   bool // the Secret of the CA does not exist
		want   string
	}{
		{"the CA has no private key", false, time.Hour, false, "Secret ns/c1-ca has no private key (tls.key): issue it where the CA is kept"},
		{"the control plane has no CA in a Secret", true, time.Hour, true, "cannot read the CA of cluster ns/c1, which issues certificates"},
		{"the certificate would outlive the CA", true, 20 * 365 * 24 * time.Hour, false, "longer than the CA"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			_, objects := secrets(t, tc.key)
			if tc.drop {
				objects = objects[:1]
			}
			streams, buffers := iostreams.Test()
			opts := kubeconfigOptions(streams, objects...)
			opts.User, opts.TTL = "jane", tc.ttl
			err := runKubeconfig(t.Context(), opts)
			if err == nil || !strings.Contains(err.Error(), tc.want) || buffers.Out.Len() > 0 {
				t.Errorf("error %v, want %q; output %q", err, tc.want, buffers.Out)
			}
		})
	}
}

// TestKubeconfigIsPrintedAsIs checks the documented output: the Secret's value and a newline.
func TestKubeconfigIsPrintedAsIs(t *testing.T) {
	streams, buffers := iostreams.Test()
	secret := pki.NewSecret(name, pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: []byte("anything")}, nil)
	if err := runKubeconfig(t.Context(), kubeconfigOptions(streams, secret)); err != nil || buffers.Out.String() != "anything\n" || buffers.Err.Len() > 0 {
		t.Errorf("error %v, output %q, messages %q", err, buffers.Out, buffers.Err)
	}
}

func TestKubeconfigMistakes(t *testing.T) {
	tests := []struct {
		reason string
		args   []string
		want   string
	}{
		{"a group without a user", []string{"c1", "--group", "g"}, "--group requires --user"},
		{"a validity without a user", []string{"c1", "--ttl", "1h"}, "--ttl requires --user"},
		{"no name", []string{"c1", "--user", " "}, "--user is empty"},
		{"no name of a group", []string{"c1", "--user", "jane", "--group", ""}, "--group is empty"},
		{"a component of Kubernetes", []string{"c1", "--user", "system:node:n1"}, "reserved for components of Kubernetes"},
		{"the group of kubelets", []string{"c1", "--user", "jane", "--group", "system:nodes"}, "only system:masters can be requested"},
		{"a name that certificates cannot have", []string{"c1", "--user", strings.Repeat("a", 65)}, "at most 64 characters"},
		{"a validity of nothing", []string{"c1", "--user", "jane", "--ttl", "0s"}, "--ttl is 0s: it must be between 1m0s and 8760h0m0s"},
		{"a validity of years", []string{"c1", "--user", "jane", "--ttl", "9000h"}, "it must be between"},
		{"an invalid validity", []string{"c1", "--user", "jane", "--ttl", "soon"}, `invalid argument "soon"`},
		{"no cluster", []string{"--user", "jane"}, "the cluster name is required"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			streams, _ := iostreams.Test()
			f := factory.New(streams, func(string) (string, bool) { return "", false }, nil)
			cmd := NewKubeconfig(f, func(context.Context, *KubeconfigOptions) error {
				t.Error("the command runs")
				return nil
			})
			cmd.SetArgs(tc.args)
			cmd.SetOut(streams.Out)
			cmd.SetErr(streams.Err)
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
