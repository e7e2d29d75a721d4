package takeover

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// of returns the metadata of object ns/x.
func of(kind string, change ...func(*metav1.PartialObjectMetadata)) metav1.PartialObjectMetadata {
	m := metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "u", ResourceVersion: "1"},
	}
	for _, f := range change {
		f(&m)
	}
	return m
}

func annotated(key string) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, "") }
}

func finalized(finalizers ...string) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) { m.Finalizers = finalizers }
}

func deleting(since int64) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) { m.DeletionTimestamp = new(metav1.Unix(since, 0)) }
}

func TestHandBack(t *testing.T) {
	hooked := annotated(controlplanev1.PreTerminateHookCleanupAnnotation)
	updating := annotated(clusterv1.UpdateInProgressAnnotation)
	for _, tc := range []struct {
		reason    string
		object    metav1.PartialObjectMetadata
		stored    map[string][]string
		led       int64 // when the present leader began to lead
		to        string
		changes   []string
		obstacles []string
	}{
		{reason: "a Machine at rest", object: of("Machine", finalized(clusterv1.MachineFinalizer)), to: "v1.7.0"},
		{
			reason: "v1.7 does not know the hook, and waits for it", object: of("Machine", hooked, annotated("user")), to: "v1.7.9",
			changes: []string{"remove annotation pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup from Machine ns/x"},
		},
		{reason: "v1.8 knows it", object: of("Machine", hooked), to: "1.8.0"},
		{
			reason: "without the hook, the etcd member would stay", object: of("Machine", hooked, deleting(10)), to: "v1.7.9",
			changes:   []string{"remove annotation pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup from Machine ns/x"},
			obstacles: []string{"Machine ns/x is being deleted, and its etcd member may not be removed yet: wait, with the managers of this version, until it is deleted"},
		},
		{
			reason: "v1.7 removes members before it deletes Machines", object: of("Machine", hooked, deleting(10)), led: 9, to: "v1.7.9",
			changes: []string{"remove annotation pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup from Machine ns/x"},
		},
		{
			reason: "but not while another leads", object: of("Machine", hooked, deleting(10)), led: 11, to: "v1.7.9",
			changes:   []string{"remove annotation pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup from Machine ns/x"},
			obstacles: []string{"Machine ns/x is being deleted, and its etcd member may not be removed yet: wait, with the managers of this version, until it is deleted"},
		},
		{
			reason: "finalizers of MachineSets are new in v1.8", object: of("MachineSet", finalized("a", clusterv1.MachineSetFinalizer)), to: "v1.7.9",
			changes: []string{"remove finalizer cluster.x-k8s.io/machineset from MachineSet ns/x"},
		},
		{
			reason: "and those of MachineDeployments", object: of("MachineDeployment", finalized(clusterv1.MachineDeploymentFinalizer)), to: "v1.7.9",
			changes: []string{"remove finalizer cluster.x-k8s.io/machinedeployment from MachineDeployment ns/x"},
		},
		{reason: "those of topologies are older", object: of("MachineDeployment", finalized(clusterv1.MachineDeploymentTopologyFinalizer)), to: "v1.7.9"},
		{
			reason: "an update in place", object: of("Machine", updating), to: "v1.11.0",
			obstacles: []string{"Machine ns/x is being updated in place, which v1.11.0 does not support: wait until that is complete, or delete it"},
		},
		{reason: "v1.12 continues it", object: of("Machine", updating), to: "v1.12.0"},
		{
			reason: "Machines that move", object: of("MachineSet", annotated(clusterv1.MachineSetMoveMachinesToMachineSetAnnotation)), to: "v1.11.0",
			obstacles: []string{"MachineSet ns/x hands over Machines to be updated in place, which v1.11.0 does not support: wait until the rollout is complete"},
		},
		{
			reason: "an upgrade by several versions", object: of("Cluster", annotated(clusterv1.ClusterTopologyUpgradeStepAnnotation)), to: "v1.11.0",
			obstacles: []string{"Cluster ns/x is being upgraded by several minor versions, which v1.11.0 does not support: wait until the upgrade is complete"},
		},
		{
			reason: "objects that v1.10 cannot read", object: of("Machine"), stored: map[string][]string{"machines.cluster.x-k8s.io": {"v1beta1", "v1beta2"}}, to: "v1.10.1",
			obstacles: []string{"objects of machines.cluster.x-k8s.io may be stored in v1beta2, which v1.10.1 does not have: run `clusterctl upgrade storage --storage-version v1beta1` first"},
		},
		{reason: "v1.11 reads them", object: of("Machine"), stored: map[string][]string{"machines.cluster.x-k8s.io": {"v1beta2"}}, to: "v1.11.0"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			to, err := Target(tc.to)
			if err != nil {
				t.Fatal(err)
			}
			o := Objects{Metadata: []metav1.PartialObjectMetadata{tc.object}, Stored: tc.stored}
			if tc.led > 0 {
				o.Led = &metav1.MicroTime{Time: time.Unix(tc.led, 0)}
			}
			p := HandBack(to, o)
			var changes []string
			for _, c := range p.Changes {
				changes = append(changes, c.String())
			}
			if diff := cmp.Diff([][]string{tc.changes, tc.obstacles}, [][]string{changes, p.Obstacles}); diff != "" {
				t.Errorf("changes and obstacles (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTarget(t *testing.T) {
	for version, valid := range map[string]bool{
		"v1.7.0": true, "1.14.3": true, "v1.6.9": false, "v1.15.0": false, "": false, "seven": false,
	} {
		if _, err := Target(version); (err == nil) != valid {
			t.Errorf("%q: error %v", version, err)
		}
	}
}

func TestEarly(t *testing.T) {
	to, err := Target("v1.7.9")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason, image string
		out           bool
		want          []string
	}{
		{reason: "the other version", image: "registry:5000/core:v1.7.9", out: true},
		{reason: "a patched one, by digest", image: "registry:5000/core@sha256:00", out: true},
		{reason: "a tag that is no version", image: "core:ours", out: true},
		{reason: "this version would add everything again", image: "core:v2.1.0", out: true, want: []string{"Deployment ns/d runs core:v2.1.0: deploy v1.7.9 there"}},
		{reason: "with a digest", image: "core:v2.1.0@sha256:00", out: true, want: []string{"Deployment ns/d runs core:v2.1.0@sha256:00: deploy v1.7.9 there"}},
		{reason: "no webhook is served, or this version still runs", image: "core:v1.7.9", want: []string{"Deployment ns/d is not rolled out: v1.7.9 has to serve its webhooks"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			p := HandBack(to, Objects{Managers: []Manager{{Namespace: "ns", Name: "d", Image: tc.image, RolledOut: tc.out}}})
			if diff := cmp.Diff(tc.want, p.Early); diff != "" {
				t.Errorf("early (-want +got):\n%s", diff)
			}
		})
	}
}
