package docker

import (
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/enginetest"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestDevClusters runs the manager over a real API server, with the permissions of a release, with a DevCluster of each backend, whose
// Clusters are in the same namespace.
func TestDevClusters(t *testing.T) {
	e := server.Start(t, "providers/core/config/crd/*.yaml", "providers/infrastructure-docker/config/crd/*.yaml")
	c, namespace := e.NewClient(t, testenv.Scheme(t, dockerv1.AddToScheme)), e.Namespace(t)
	grant(t, e, c)
	containers := enginetest.New()
	run(t, e.Config, containers)
	backends := map[string]dockerv1.DevClusterBackendSpec{
		"containers": {Docker: &dockerv1.DockerClusterBackendSpec{FailureDomains: []clusterv1.FailureDomain{{Name: "a"}}}},
		"simulated":  {InMemory: &dockerv1.InMemoryClusterBackendSpec{}},
	}
	for name, backend := range backends {
		create(t, c, devCluster(t, c, namespace, name, backend))
	}
	for name := range backends {
		key := client.ObjectKey{Namespace: namespace, Name: name}
		testenv.Eventually(t, "DevCluster "+name+" to be ready", func() error {
			got, err := fetch(t.Context(), c, key, &dockerv1.DevCluster{})
			if at := got.Spec.ControlPlaneEndpoint; err == nil &&
				(!ptr.Deref(got.Status.Initialization.Provisioned, false) || at.Host == "" || at.Port == 0) {
				err = fmt.Errorf("its endpoint is %+v, its status %+v", at, got.Status)
			}
			return err
		})
	}
	if got, want := containers.Containers(), []string{identity.LoadBalancerContainer("containers")}; !slices.Equal(got, want) {
		t.Errorf("containers %v, want %v", got, want)
	}
	for name := range backends {
		infra := &dockerv1.DevCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := c.Delete(t.Context(), infra); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, "DevCluster "+name+" to be gone", func() error {
			if _, err := fetch(t.Context(), c, client.ObjectKeyFromObject(infra), infra); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it exists, error %w", err)
			}
			return nil
		})
	}
	if left := slices.Concat(containers.Containers(), containers.Networks()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// devCluster creates a Cluster, and returns its DevCluster.
func devCluster(t *testing.T, c client.Client, namespace, name string, backend dockerv1.DevClusterBackendSpec) *dockerv1.DevCluster {
	t.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: dockerv1.GroupVersion.Group, Kind: "DevCluster", Name: name},
	}}
	create(t, c, cluster)
	return &dockerv1.DevCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: name, UID: cluster.UID}},
		},
		Spec: dockerv1.DevClusterSpec{Backend: backend},
	}
}
