package machinedeployment

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/step"
)

// now is when the tests take place.
func now() time.Time { return time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC) }

// template is what Machines are made from, changed in some way.
func template(change ...func(*clusterv1.MachineTemplateSpec)) clusterv1.MachineTemplateSpec {
	t := clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
		ClusterName: "c", Version: ptr.To("v1.30.0"),
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: &corev1.ObjectReference{APIVersion: "bootstrap.cluster.x-k8s.io/v1beta1", Kind: "KubeadmConfigTemplate", Name: "b"}},
		InfrastructureRef: corev1.ObjectReference{APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: "DockerMachineTemplate", Name: "i"},
	}}
	for _, f := range change {
		f(&t)
	}
	return t
}

// machineSet is a set of this template, so many days old.
func machineSet(name string, days, replicas int32, change ...func(*clusterv1.MachineTemplateSpec)) *clusterv1.MachineSet {
	return &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, CreationTimestamp: metav1.NewTime(now().AddDate(0, 0, -int(days)))},
		Spec:       clusterv1.MachineSetSpec{Replicas: &replicas, Template: template(change...)},
	}
}

func TestWhatReplacesMachines(t *testing.T) {
	minute := &metav1.Duration{Duration: time.Minute}
	cases := map[string]struct {
		reason   string
		change   func(*clusterv1.MachineTemplateSpec)
		replaces bool
	}{
		"Nothing":     {reason: "the same is the same", change: func(*clusterv1.MachineTemplateSpec) {}},
		"Labels":      {reason: "in place", change: func(m *clusterv1.MachineTemplateSpec) { m.Labels = map[string]string{"a": "b"} }},
		"Annotations": {reason: "in place", change: func(m *clusterv1.MachineTemplateSpec) { m.Annotations = map[string]string{"a": "b"} }},
		"Drain":       {reason: "in place", change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.NodeDrainTimeout = minute }},
		"Detach":      {reason: "in place", change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.NodeVolumeDetachTimeout = minute }},
		"Deletion":    {reason: "in place", change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.NodeDeletionTimeout = minute }},
		"APIVersion": {reason: "an API may move on", change: func(m *clusterv1.MachineTemplateSpec) {
			m.Spec.InfrastructureRef.APIVersion = "infrastructure.cluster.x-k8s.io/v1beta2"
		}},
		"ConfigVersion": {reason: "an API may move on", change: func(m *clusterv1.MachineTemplateSpec) {
			m.Spec.Bootstrap.ConfigRef.APIVersion = "bootstrap.cluster.x-k8s.io/v1beta2"
		}},
		"Version":       {reason: "another Kubernetes", replaces: true, change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.Version = ptr.To("v1.31.0") }},
		"Template":      {reason: "another template", replaces: true, change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.InfrastructureRef.Name = "j" }},
		"Config":        {reason: "another config", replaces: true, change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.Bootstrap.ConfigRef.Name = "j" }},
		"Group":         {reason: "another provider", replaces: true, change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.InfrastructureRef.APIVersion = "other.io/v1beta1" }},
		"FailureDomain": {reason: "another place", replaces: true, change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.FailureDomain = ptr.To("a") }},
		"Secret":        {reason: "other data", replaces: true, change: func(m *clusterv1.MachineTemplateSpec) { m.Spec.Bootstrap.DataSecretName = ptr.To("s") }},
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
				t.Errorf("comparing changes nothing (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCurrent(t *testing.T) {
	other := func(m *clusterv1.MachineTemplateSpec) { m.Spec.Version = ptr.To("v1.29.0") }
	cases := map[string]struct {
		reason    string
		sets      []*clusterv1.MachineSet
		notBefore time.Time
		want      string
	}{
		"None":     {reason: "there is none"},
		"Other":    {reason: "none of the template", sets: []*clusterv1.MachineSet{machineSet("a", 1, 1, other)}},
		"Biggest":  {reason: "the biggest, so that least is replaced", sets: []*clusterv1.MachineSet{machineSet("a", 3, 1), machineSet("b", 1, 2), machineSet("c", 2, 0)}, want: "b"},
		"Oldest":   {reason: "of equal ones the oldest", sets: []*clusterv1.MachineSet{machineSet("a", 1, 1), machineSet("b", 2, 1)}, want: "b"},
		"Name":     {reason: "then names decide", sets: []*clusterv1.MachineSet{machineSet("b", 1, 1), machineSet("a", 1, 1)}, want: "a"},
		"TooOld":   {reason: "Machines from before are to be replaced", sets: []*clusterv1.MachineSet{machineSet("a", 3, 1)}, notBefore: now().AddDate(0, 0, -2)},
		"NotOld":   {reason: "but not those from that second on", sets: []*clusterv1.MachineSet{machineSet("a", 3, 9), machineSet("b", 2, 1)}, notBefore: now().AddDate(0, 0, -2), want: "b"},
		"Replaced": {reason: "the set that replaced them stays current", sets: []*clusterv1.MachineSet{machineSet("a", 3, 0), machineSet("b", 1, 0)}, notBefore: now().AddDate(0, 0, -2), want: "b"},
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

// chosen is what a deployment of this spec does with sets.
func chosen(t *testing.T, md *clusterv1.MachineDeployment, sets ...*clusterv1.MachineSet) (*scope, step.Result) {
	t.Helper()
	s := runtime.NewScheme()
	if err := clusterv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, set := range sets {
		objects = append(objects, set)
	}
	c := &Controller{Outside: step.Outside{
		Client: fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build(), Clock: clocktesting.NewFakePassiveClock(now()),
	}}
	sc := &scope{deployment: md, sets: sets}
	result, err := c.choose(t.Context(), sc)
	if err != nil {
		t.Fatal(err)
	}
	return sc, result
}

func machineDeployment(after *metav1.Time) *clusterv1.MachineDeployment {
	return &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "md", UID: "1-2-3"},
		Spec:       clusterv1.MachineDeploymentSpec{Template: template(), RolloutAfter: after},
	}
}

func TestRolloutAfterPasses(t *testing.T) {
	set := machineSet("a", 3, 1)
	later := metav1.NewTime(now().Add(time.Hour))
	if s, result := chosen(t, machineDeployment(&later), set); s.current != set || result.After() != time.Hour {
		t.Errorf("until then nothing changes, and then we look again: %v after %s", s.current, result.After())
	}
	passed := metav1.NewTime(now().AddDate(0, 0, -1))
	s, result := chosen(t, machineDeployment(&passed), set)
	if s.current != nil || s.newIdentity.name == "" || result.After() != 0 {
		t.Errorf("after that there is another set: %+v after %s", s, result.After())
	}
	never, _ := chosen(t, machineDeployment(nil))
	if never.fresh.name == s.newIdentity.name || !strings.HasSuffix(s.newIdentity.hash, s.newIdentity.name[len("md"):]) {
		t.Errorf("the same template has another name: %+v and %+v", never.fresh, s.newIdentity)
	}
}

func TestNames(t *testing.T) {
	first, _ := chosen(t, machineDeployment(nil))
	if again, _ := chosen(t, machineDeployment(nil)); again.fresh != first.fresh {
		t.Errorf("who asks twice makes one set: %+v and %+v", again.fresh, first.fresh)
	}
	inPlace := machineDeployment(nil)
	inPlace.Spec.Template.Labels = map[string]string{"a": "b"}
	if again, _ := chosen(t, inPlace); again.fresh != first.fresh {
		t.Errorf("labels have no part in it: %+v and %+v", again.fresh, first.fresh)
	}
	taken := machineSet(first.fresh.name, 1, 1, func(m *clusterv1.MachineTemplateSpec) { m.Spec.FailureDomain = ptr.To("somewhere") })
	second, _ := chosen(t, machineDeployment(nil), taken)
	if second.fresh == first.fresh || second.fresh.name == "" {
		t.Errorf("a set that cannot be used keeps its name: %+v", second.fresh)
	}
	other := machineDeployment(nil)
	other.UID = "4-5-6"
	if s, _ := chosen(t, other); s.newIdentity.name == first.fresh.name {
		t.Errorf("another deployment has other sets: %+v", s.newIdentity)
	}
	paused := machineDeployment(nil)
	paused.Spec.Paused = true
	if s, _ := chosen(t, paused); s.newIdentity.name != "" {
		t.Errorf("a paused one makes none: %+v", s.newIdentity)
	}
}
