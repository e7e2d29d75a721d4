package journey

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// versionsSeen collects the versions that Machines have over time.
type versionsSeen struct {
	mu                    sync.Mutex
	controlPlane, workers []string
}

// all returns the versions in the order in which Machines had them first.
func (v *versionsSeen) all() (controlPlane, workers []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.controlPlane), slices.Clone(v.workers)
}

// record is a Condition that is always true.
func (v *versionsSeen) record(p *Snapshot) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	add := func(to *[]string, machines []clusterv1.Machine) {
		for i := range machines {
			if version := machines[i].Spec.Version; version != nil && !slices.Contains(*to, *version) {
				*to = append(*to, *version)
			}
		}
	}
	add(&v.controlPlane, p.ControlPlane())
	add(&v.workers, p.Workers())
	return nil
}

// TestChainedUpgrade upgrades a Cluster by four minor versions with one change. Its class, which lists the versions, is in another
// namespace. The control plane gets each version; the workers stop only where they would become too old.
func TestChainedUpgrade(t *testing.T) {
	t.Parallel()
	classes, clusters := shared.World(t), shared.World(t)
	objects, err := readObjects(classes.Tools.ProjectTemplate().Class)
	testenv.Must(t, err)
	class, versions := "", []string{older, newer, "v1.32.0", "v1.32.4", "v1.33.1", "v1.34.0"}
	for _, o := range objects {
		if o.GetKind() == "ClusterClass" {
			class = o.GetName()
			testenv.Must(t, unstructured.SetNestedStringSlice(o.Object, versions, "spec", "kubernetesVersions"))
		}
		classes.Applied(o)
	}
	cluster := NewCluster("c", class).ControlPlanes(1).Workers(1).Build()
	cluster.Spec.Topology.ClassNamespace = classes.Namespace
	c := clusters.Subject(cluster)
	c.Eventually("the Cluster of a class in another namespace becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)

	seen := &versionsSeen{}
	still := c.Always("one worker is available", AvailableWorkers(1), seen.record)
	c.Change(SetVersion("v1.34.0"))
	c.Eventually("the Cluster has the last version", Ready, ControlPlanes(1), Workers(1), Version("v1.34.0"), c.WorkloadMatches)
	still()
	controlPlane, workers := seen.all()
	if diff := cmp.Diff([]string{older, newer, "v1.32.4", "v1.33.1", "v1.34.0"}, controlPlane); diff != "" {
		t.Errorf("versions of the control plane (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{older, "v1.33.1", "v1.34.0"}, workers); diff != "" {
		t.Errorf("versions of workers (-want +got):\n%s", diff)
	}
	c.Gone()
}
