package credentials

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// bench is a Provider in a World.
type bench struct {
	*kcptest.World
	provider *Provider
	// Secrets and Keys are those of the Provider.
	Secrets client.Reader
	Keys    *pki.Keys
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	w := kcptest.New(t, objects...)
	return &bench{World: w, provider: &Provider{}, Secrets: w.Client}
}

// take takes the steps with these names in order.
func (b *bench) take(ctx context.Context, names ...string) (step.Result, error) {
	b.provider.Clients, b.provider.Secrets, b.provider.Keys = b.Clients, b.Secrets, b.Keys
	var steps []step.Step[*snapshot.ControlPlane]
	for _, name := range names {
		one := step.Do(name, b.provider.Kubeconfig)
		if name == "certificates" {
			one = step.Do(name, func(ctx context.Context, cp *snapshot.ControlPlane) (step.Result, error) {
				_, result, err := b.provider.Certificates(ctx, cp)
				return result, err
			}).Sets(controlplanev1.CertificatesAvailableV1Beta1Condition)
		}
		steps = append(steps, one)
	}
	return steptest.Run(ctx, b.KCP, b.ControlPlane, steps...)
}

func (b *bench) secret(t *testing.T, p pki.Purpose) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	testenv.Must(t, b.API.Get(t.Context(), pki.SecretKey(b.Key(), p), secret))
	return secret
}

func userSecret(p pki.Purpose, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: pki.SecretName("c", p)}, Data: data}
}

func TestCertificatesOfUsersAreNotChanged(t *testing.T) {
	mine := userSecret(pki.ClusterCA, map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("y")})
	b := newBench(t, mine)
	if _, err := b.take(t.Context(), "certificates"); err != nil {
		t.Fatal(err)
	}
	if got := b.secret(t, pki.ClusterCA); len(got.OwnerReferences) != 0 || string(got.Data["tls.crt"]) != "x" {
		t.Errorf("the user's Secret was changed: %+v", got)
	}
	if want := []string{"create Secret c-etcd", "create Secret c-proxy", "create Secret c-sa"}; !slices.Equal(want, b.API.Writes) {
		t.Errorf("writes %q, want %q", b.API.Writes, want)
	}
	b.API.Writes = nil
	if _, err := b.take(t.Context(), "certificates"); err != nil || len(b.API.Writes) != 0 {
		t.Errorf("writes in the second round: %q, error %v", b.API.Writes, err)
	}
}

// labeled is a cache of Secrets with the label of a cluster.
type labeled struct{ client.Reader }

func (l labeled) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	if err := l.Reader.Get(ctx, key, obj, o...); err != nil {
		return err
	}
	if _, ok := obj.GetLabels()[clusterv1.ClusterNameLabel]; !ok {
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	return nil
}

// Without the label, controllers that read from the cache would not find these Secrets.
func TestCertificatesOfUsersGetTheLabelOfTheCluster(t *testing.T) {
	data := map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("y")}
	external := bootstrapv1.ClusterConfiguration{Etcd: bootstrapv1.Etcd{External: bootstrapv1.ExternalEtcd{CAFile: "ca"}}}
	for purpose, config := range map[pki.Purpose]bootstrapv1.ClusterConfiguration{pki.EtcdCA: {}, pki.APIServerEtcdClient: external} {
		b := newBench(t, userSecret(purpose, data))
		b.Secrets = labeled{b.Client}
		b.KCP.Spec.KubeadmConfigSpec.ClusterConfiguration = config
		if purpose == pki.APIServerEtcdClient {
			testenv.Must(t, b.API.Create(t.Context(), userSecret(pki.EtcdCA, data)))
		}
		if _, err := b.take(t.Context(), "certificates"); err != nil {
			t.Fatal(err)
		}
		got := b.secret(t, purpose)
		if got.Labels[clusterv1.ClusterNameLabel] != "c" || len(got.OwnerReferences) != 0 || !maps.EqualFunc(data, got.Data, bytes.Equal) {
			t.Errorf("secret %s: %+v", purpose, got)
		}
		b.API.Writes = nil
		if _, err := b.take(t.Context(), "certificates"); err != nil || len(b.API.Writes) != 0 {
			t.Errorf("secret %s: writes in the second round: %q, error %v", purpose, b.API.Writes, err)
		}
	}
}

// New Machines cannot use another CA than existing ones.
func TestCertificatesOfARunningCluster(t *testing.T) {
	for reason, initialized := range map[string]func(*bench){
		"the control plane is initialized": func(b *bench) { b.KCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true) },
		"the Cluster is initialized": func(b *bench) {
			condition.Set(b.Cluster, condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition))
		},
		"a Machine has bootstrap data": func(b *bench) {
			b.Machines = []*snapshot.Machine{{Machine: &clusterv1.Machine{Spec: clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("m")}}}}}
		},
	} {
		t.Run(reason, func(t *testing.T) {
			b := newBench(t)
			if _, err := b.take(t.Context(), "certificates"); err != nil {
				t.Fatal(err)
			}
			initialized(b)
			testenv.Must(t, b.API.Delete(t.Context(), b.secret(t, pki.FrontProxyCA)))
			b.API.Writes = nil
			if _, err := b.take(t.Context(), "certificates"); err == nil || !strings.Contains(err.Error(), "c-proxy: it does not exist") || len(b.API.Writes) != 0 {
				t.Errorf("error %v, writes %q: a lost CA must be restored", err, b.API.Writes)
			}
			if c := condition.Get(b.KCP, controlplanev1.CertificatesAvailableV1Beta1Condition); c.Reason != controlplanev1.CertificatesGenerationFailedV1Beta1Reason {
				t.Errorf("condition %+v", c)
			}
		})
	}
}

func TestCertificatesOfAnExternalEtcd(t *testing.T) {
	external := bootstrapv1.ClusterConfiguration{Etcd: bootstrapv1.Etcd{External: bootstrapv1.ExternalEtcd{CAFile: "ca"}}}
	client := userSecret(pki.APIServerEtcdClient, map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("y")})
	b := newBench(t, client)
	b.KCP.Spec.KubeadmConfigSpec.ClusterConfiguration = external
	if _, err := b.take(t.Context(), "certificates"); err == nil || !strings.Contains(err.Error(), "create it before the cluster") {
		t.Errorf("without the Secret of the etcd CA: error %v", err)
	}
	if c := condition.Get(b.KCP, controlplanev1.CertificatesAvailableV1Beta1Condition); c == nil || c.Reason != controlplanev1.CertificatesGenerationFailedV1Beta1Reason {
		t.Errorf("condition %+v", c)
	}
	b = newBench(t, client, userSecret(pki.EtcdCA, map[string][]byte{"tls.crt": []byte("x")}))
	b.KCP.Spec.KubeadmConfigSpec.ClusterConfiguration = external
	if _, err := b.take(t.Context(), "certificates"); err != nil {
		t.Errorf("the CA of an external etcd needs no key: %v", err)
	}
}

func TestCertificatesOfTheFirstKubeadmConfigAreTakenOver(t *testing.T) {
	secret := userSecret(pki.ClusterCA, map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("y")})
	secret.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: bootstrapv1.GroupVersion.String(), Kind: "KubeadmConfig", Name: "m", UID: "m-uid", Controller: ptr.To(true),
	}}
	b := newBench(t, secret)
	if _, err := b.take(t.Context(), "certificates"); err != nil {
		t.Fatal(err)
	}
	if got := b.secret(t, pki.ClusterCA); len(got.OwnerReferences) != 1 || !metav1.IsControlledBy(got, b.KCP) {
		t.Errorf("owners %+v", got.OwnerReferences)
	}
}
