package machinedeployment

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var build = object.Builder{Namespace: "n"}

// template returns a template of Machines, changed by change.
func template(change ...func(*clusterv1.MachineTemplateSpec)) clusterv1.MachineTemplateSpec {
	t := clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
		ClusterName: "c", Version: "v1.30.0",
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate", Name: "b"}},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "DockerMachineTemplate", Name: "i"},
	}}
	for _, f := range change {
		f(&t)
	}
	return t
}

// machineSet returns a set of the template, created days ago.
func machineSet(name string, days, replicas int32, change ...func(*clusterv1.MachineTemplateSpec)) *clusterv1.MachineSet {
	return build.MachineSet(name, func(set *clusterv1.MachineSet) {
		set.CreationTimestamp = metav1.NewTime(object.Now().AddDate(0, 0, -int(days)))
		set.Spec.Replicas, set.Spec.Template = &replicas, template(change...)
	})
}

func TestChangesThatReplaceMachines(t *testing.T) {
	minute := ptr.To[int32](60)
	cases := map[string]struct {
		reason   string
		change   func(*clusterv1.MachineTemplateSpec)
		replaces bool
	}{
		"Nothing":     {reason: "nothing differs", change: func(*clusterv1.MachineTemplateSpec) {}},
		"Labels":      {reason: "updated in place", change: func(m *clusterv1.MachineTemplateSpec) { m.Labels = map[string]string{"a": "b"} }},
		"Annotations": {reason: "updated in place", change: func(m *clusterv1.MachineTemplateSpec) { m.Annotations = map[string]string{"a": "b"} }},
		"Drain":       {reason: "updated in place", change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.Deletion.NodeDrainTimeoutSeconds = minute }},
		"Detach":      {reason: "updated in place", change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = minute }},
		"Deletion":    {reason: "updated in place", change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.Deletion.NodeDeletionTimeoutSeconds = minute }},
		"Gates": {reason: "updated in place", change: func(m *clusterv1.MachineTemplateSpec) {
			m.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "A"}}
		}},
		"Taints":        {reason: "updated in place", change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.Taints = []clusterv1.MachineTaint{{Key: "a"}} }},
		"MinReady":      {reason: "updated in place", change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.MinReadySeconds = minute }},
		"Version":       {reason: "another Kubernetes version", replaces: true, change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.Version = "v1.31.0" }},
		"Template":      {reason: "another infrastructure template", replaces: true, change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.InfrastructureRef.Name = "j" }},
		"Config":        {reason: "another bootstrap template", replaces: true, change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.Bootstrap.ConfigRef.Name = "j" }},
		"Group":         {reason: "another provider", replaces: true, change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.InfrastructureRef.APIGroup = "other.io" }},
		"FailureDomain": {reason: "another failure domain", replaces: true, change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.FailureDomain = "a" }},
		"Secret":        {reason: "other bootstrap data", replaces: true, change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.Bootstrap.DataSecretName = ptr.To("s") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := machineSet("s", 1, 1)
			changed := template(tc.change)
			found := current([]*clusterv1.MachineSet{set}, &changed, time.Time{})
			if (found == nil) != tc.replaces {
				t.Errorf("%s: the set is still current: %t", tc.reason, found != nil)
			}
			if diff := cmp.Diff(template(tc.change), changed); diff != "" {
				t.Errorf("the comparison changed the template (-want +got):\n%s", diff)
			}
		})
	}
}

// References of v1beta1 have versions and namespaces, which do not count; no bootstrap data is the same in both versions.
func TestTemplatesOfOlderVersions(t *testing.T) {
	for name, version := range map[string]string{"Same": "v1beta1", "Older": "v1alpha4", "Newer": "v1beta2"} {
		t.Run(name, func(t *testing.T) {
			older := &clusterv1beta1.MachineSet{}
			older.Name, older.Namespace = "s", "n"
			older.Spec.Template.Spec = clusterv1beta1.MachineSpec{
				ClusterName: "c", Version: ptr.To("v1.30.0"), NodeDrainTimeout: &metav1.Duration{Duration: time.Minute},
				InfrastructureRef: corev1.ObjectReference{
					APIVersion: "infrastructure.cluster.x-k8s.io/" + version, Kind: "DockerMachineTemplate", Name: "i", Namespace: "n",
				},
			}
			set := &clusterv1.MachineSet{}
			testenv.Must(t, conversion.Shared().Convert(t.Context(), older, set))
			wanted := template(func(m *clusterv1.MachineTemplateSpec) {
				m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("")}
			})
			if current([]*clusterv1.MachineSet{set}, &wanted, time.Time{}) == nil {
				t.Errorf("the MachineSet is not current: %+v", set.Spec.Template)
			}
		})
	}
}

func TestCurrent(t *testing.T) {
	other := func(m *clusterv1.MachineTemplateSpec) { m.Spec.Version = "v1.29.0" }
	cases := map[string]struct {
		reason    string
		sets      []*clusterv1.MachineSet
		notBefore time.Time
		want      string
	}{
		"None":     {reason: "there are no sets"},
		"Other":    {reason: "no set has the template", sets: []*clusterv1.MachineSet{machineSet("a", 1, 1, other)}},
		"Biggest":  {reason: "the set with the most replicas, so that the fewest are replaced", sets: []*clusterv1.MachineSet{machineSet("a", 3, 1), machineSet("b", 1, 2), machineSet("c", 2, 0)}, want: "b"},
		"Oldest":   {reason: "the oldest of equal sets", sets: []*clusterv1.MachineSet{machineSet("a", 1, 1), machineSet("b", 2, 1)}, want: "b"},
		"Name":     {reason: "the first by name of sets of the same age", sets: []*clusterv1.MachineSet{machineSet("b", 1, 1), machineSet("a", 1, 1)}, want: "a"},
		"TooOld":   {reason: "the set was created before rolloutAfter", sets: []*clusterv1.MachineSet{machineSet("a", 3, 1)}, notBefore: object.Now().AddDate(0, 0, -2)},
		"NotOld":   {reason: "the set was created at the second of rolloutAfter", sets: []*clusterv1.MachineSet{machineSet("a", 3, 9), machineSet("b", 2, 1)}, notBefore: object.Now().AddDate(0, 0, -2), want: "b"},
		"Replaced": {reason: "the set that replaced the older one stays current", sets: []*clusterv1.MachineSet{machineSet("a", 3, 0), machineSet("b", 1, 0)}, notBefore: object.Now().AddDate(0, 0, -2), want: "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wanted := template()
			got := ""
			if found := current(tc.sets, &wanted, tc.notBefore); found != nil {
				got = found.Name
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// chosen runs the choose step for a deployment with sets.
func chosen(t *testing.T, md *clusterv1.MachineDeployment, sets ...*clusterv1.MachineSet) (*scope, step.Result) {
	t.Helper()
	var objects []client.Object
	names := map[string]bool{}
	for _, set := range sets {
		objects, names[set.Name] = append(objects, set), true
	}
	c := &Controller{Clients: fakeapi.New(t, fakeapi.Options{Objects: objects}).ForController()}
	sc := &scope{deployment: md, sets: sets, names: names}
	result, err := c.choose(t.Context(), sc)
	if err != nil {
		t.Fatal(err)
	}
	return sc, result
}

func machineDeployment(after metav1.Time) *clusterv1.MachineDeployment {
	return build.MachineDeployment("md", func(md *clusterv1.MachineDeployment) {
		md.UID = "1-2-3"
		md.Spec.Template, md.Spec.Rollout.After = template(), after
	})
}

func TestRolloutAfterPasses(t *testing.T) {
	set := machineSet("a", 3, 1)
	later := metav1.NewTime(object.Now().Add(time.Hour))
	if s, result := chosen(t, machineDeployment(later), set); s.current != set || result.After() != time.Hour {
		t.Errorf("current = %v, requeued after %s; want the old set, and a requeue at rolloutAfter", s.current, result.After())
	}
	passed := metav1.NewTime(object.Now().AddDate(0, 0, -1))
	s, result := chosen(t, machineDeployment(passed), set)
	if s.current != nil || s.newIdentity.name == "" || result.After() != 0 {
		t.Errorf("scope = %+v, requeued after %s; want a new set", s, result.After())
	}
	never, _ := chosen(t, machineDeployment(metav1.Time{}))
	if never.newIdentity.name == s.newIdentity.name || !strings.HasSuffix(s.newIdentity.hash, s.newIdentity.name[len("md"):]) {
		t.Errorf("identities = %+v and %+v; want different names for the same template", never.newIdentity, s.newIdentity)
	}
}

func TestNames(t *testing.T) {
	first, _ := chosen(t, machineDeployment(metav1.Time{}))
	if again, _ := chosen(t, machineDeployment(metav1.Time{})); again.newIdentity != first.newIdentity {
		t.Errorf("identities = %+v and %+v; want the same", again.newIdentity, first.newIdentity)
	}
	inPlace := machineDeployment(metav1.Time{})
	inPlace.Spec.Template.Labels = map[string]string{"a": "b"}
	if again, _ := chosen(t, inPlace); again.newIdentity != first.newIdentity {
		t.Errorf("identities = %+v and %+v; want the same with other labels", again.newIdentity, first.newIdentity)
	}
	taken := machineSet(first.newIdentity.name, 1, 1, func(m *clusterv1.MachineTemplateSpec) { m.Spec.FailureDomain = "somewhere" })
	second, _ := chosen(t, machineDeployment(metav1.Time{}), taken)
	if second.newIdentity == first.newIdentity || second.newIdentity.name == "" {
		t.Errorf("identity = %+v; want another name than that of a set with another template", second.newIdentity)
	}
	other := machineDeployment(metav1.Time{})
	other.UID = "4-5-6"
	if s, _ := chosen(t, other); s.newIdentity.name == first.newIdentity.name {
		t.Errorf("identity = %+v; want another one for another deployment", s.newIdentity)
	}
	paused := machineDeployment(metav1.Time{})
	paused.Spec.Paused = ptr.To(true)
	if s, _ := chosen(t, paused); s.newIdentity.name != "" {
		t.Errorf("identity = %+v; want none for a paused deployment", s.newIdentity)
	}
}
