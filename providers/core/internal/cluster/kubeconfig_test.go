package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

func secret(t *testing.T, purpose pki.Purpose) *corev1.Secret {
	t.Helper()
	data := map[string][]byte{}
	if purpose == pki.ClusterCA {
		ca, err := pki.NewCA(pki.ECDSA, now)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := ca.PEM()
		if err != nil {
			t.Fatal(err)
		}
		data = pair.Data()
	}
	return pki.NewSecret(client.ObjectKeyFromObject(build.Cluster()), purpose, data, nil)
}

func TestKubeconfig(t *testing.T) {
	ca := secret(t, pki.ClusterCA)
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		objects []client.Object
		writes  []string
		after   time.Duration
	}{
		"Managed":    {"its control plane object creates one", build.Cluster(withPlane, withEndpoint), []client.Object{ca}, nil, 0},
		"NoEndpoint": {"the API server has no address yet", build.Cluster(), []client.Object{ca}, nil, 0},
		"NoCA":       {"the CA Secret does not exist", build.Cluster(withEndpoint), nil, nil, 30 * time.Second},
		"Exists":     {"it is created once", build.Cluster(withEndpoint), []client.Object{ca, secret(t, pki.Kubeconfig)}, nil, 0},
		"Created":    {"all prerequisites are met", build.Cluster(withEndpoint), []client.Object{ca}, []string{"create Secret c-kubeconfig"}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.objects...)
			r, err := w.step(t, "kubeconfig", tc.cluster)
			if err != nil || r.After() != tc.after {
				t.Errorf("%s: waits for %q at most %s, err = %v", tc.reason, r.Waiting(), r.After(), err)
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKubeconfigContent(t *testing.T) {
	w := newWorld(t, secret(t, pki.ClusterCA))
	if _, err := w.step(t, "kubeconfig", build.Cluster(withEndpoint)); err != nil {
		t.Fatal(err)
	}
	created := &corev1.Secret{}
	testenv.Must(t, w.Client.Get(t.Context(), pki.SecretKey(client.ObjectKeyFromObject(build.Cluster()), pki.Kubeconfig), created))
	config, err := clientcmd.RESTConfigFromKubeConfig(created.Data[pki.KubeconfigKey])
	if err != nil || config.Host != "https://own:1" {
		t.Errorf("config = %v, err = %v; want one for https://own:1", config, err)
	}
	owner := []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: "c", UID: "cluster-c"}}
	if diff := cmp.Diff(owner, created.OwnerReferences); diff != "" {
		t.Errorf("owner references, -want +got:\n%s", diff)
	}
	if created.Labels[clusterv1.ClusterNameLabel] != "c" {
		t.Errorf("labels = %v, want the Cluster's name: managers cache no other Secrets", created.Labels)
	}
}

// A kubeconfig that was restored without its owner gets it again; that of a user does not.
func TestOrphanedKubeconfigIsOwnedAgain(t *testing.T) {
	for reason, generated := range map[string]bool{"generated": true, "of a user": false} {
		w := newWorld(t, secret(t, pki.ClusterCA))
		if _, err := w.step(t, "kubeconfig", build.Cluster(withEndpoint)); err != nil {
			t.Fatal(err)
		}
		kubeconfig := &corev1.Secret{}
		key := pki.SecretKey(client.ObjectKeyFromObject(build.Cluster()), pki.Kubeconfig)
		testenv.Must(t, w.Client.Get(t.Context(), key, kubeconfig))
		kubeconfig.OwnerReferences = nil
		if !generated {
			kubeconfig.Annotations = nil
		}
		testenv.Must(t, w.Client.Update(t.Context(), kubeconfig))
		if _, err := w.step(t, "kubeconfig", build.Cluster(withEndpoint)); err != nil {
			t.Fatal(err)
		}
		testenv.Must(t, w.Client.Get(t.Context(), key, kubeconfig))
		if owned := len(kubeconfig.OwnerReferences) == 1; owned != generated {
			t.Errorf("a kubeconfig that is %s has the owners %v", reason, kubeconfig.OwnerReferences)
		}
	}
}

// TestRejectedKubeconfigIsNotShown has an API server that quotes the rejected Secret in its response.
func TestRejectedKubeconfigIsNotShown(t *testing.T) {
	w := newWorld(t, secret(t, pki.ClusterCA))
	w.Before = func(r fakeapi.Request) error {
		if r.Verb != "create" {
			return nil
		}
		return apierrors.NewForbidden(corev1.Resource("secrets"), r.Name, fmt.Errorf("not wanted: %s", r.Object.(*corev1.Secret).Data))
	}
	_, err := w.step(t, "kubeconfig", build.Cluster(withEndpoint))
	if !apierrors.IsForbidden(err) || err.Error() != "creating Secret c-kubeconfig: the API server answered 403 Forbidden" {
		t.Errorf("err = %v, want one with only the name of the Secret and the status code", err)
	}
}

func TestCACreated(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		secret *corev1.Secret
		want   bool
	}{
		"CA":         {"the kubeconfig step may wait for it", secret(t, pki.ClusterCA), true},
		"Kubeconfig": {"no step waits for it", secret(t, pki.Kubeconfig), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := caCreated().Create(event.CreateEvent{Object: tc.secret}); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}
