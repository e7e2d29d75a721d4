package e2e

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// oldest is the minor before older. There is a node image of it in make soak only.
const oldest = "v1.34.4"

// versions collects the versions that Machines have over time.
type versions struct {
	mu                    sync.Mutex
	controlPlane, workers []string
}

// record is a Condition that is always true.
func (v *versions) record(p *journey.Snapshot) error {
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

// TestChainedUpgrade upgrades a Cluster by two minor versions with one change: kubeadm upgrades by one at a time. Workers, which may be
// three minors older than the control plane, are replaced once.
func TestChainedUpgrade(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	dir := filepath.Join(w.Tools.Root, "providers", "infrastructure-docker", "config", "templates")
	template := journey.Template{Cluster: filepath.Join(dir, "cluster-template-development.yaml"), Class: filepath.Join(dir, "clusterclass-quick-start.yaml")}
	class := &unstructured.Unstructured{}
	class.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	class.SetKind("ClusterClass")
	class.SetNamespace(w.Namespace)
	class.SetName(w.Class(template))
	listed := `{"spec": {"kubernetesVersions": ["` + oldest + `", "` + older + `", "` + newer + `"]}}`
	if err := w.Client.Patch(t.Context(), class, client.RawPatch(types.MergePatchType, []byte(listed))); err != nil {
		t.Fatal(err)
	}
	cluster := w.Generated(template, "chained", oldest, 1, 1)
	networkSet(t, w, cluster)
	var c *journey.Subject
	stage(t, "1 control plane machine and 1 worker", func() {
		c = subject(t, w, cluster)
		c.Eventually("the Cluster becomes ready", journey.Ready, journey.ControlPlanes(1), journey.Workers(1), journey.Version(oldest), c.WorkloadMatches)
	})
	seen := &versions{}
	still := c.Always("a worker is available", journey.AvailableWorkers(1), seen.record)
	consistent := c.EtcdIsConsistent(1, 2)
	api := writes(t, c)
	stage(t, "upgraded by two minors", func() {
		c.Change(journey.SetVersion(newer))
		c.Eventually("the upgrade ends", journey.Ready, journey.ControlPlanes(1), journey.Workers(1), journey.Version(newer), c.WorkloadMatches)
	})
	still()
	consistent()
	api.end(15 * time.Second)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if diff := cmp.Diff([]string{oldest, older, newer}, seen.controlPlane); diff != "" {
		t.Errorf("versions of the control plane (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{oldest, newer}, seen.workers); diff != "" {
		t.Errorf("versions of workers (-want +got):\n%s", diff)
	}
	stage(t, "deleted", func() { gone(t, c) })
}
