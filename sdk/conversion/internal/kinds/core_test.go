package kinds

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func minutes(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Minute}
}

func count(n int) *intstr.IntOrString { return ptr.To(intstr.FromInt32(int32(n))) }

// ref returns a reference as v1beta1 has it, with the version and namespace that the conversion adds.
func ref(group, kind, name string) *corev1.ObjectReference {
	version := "v1beta2"
	if group == "infrastructure" {
		version = "v1alpha1"
	}
	return &corev1.ObjectReference{APIVersion: group + ".cluster.x-k8s.io/" + version, Kind: kind, Namespace: "ns", Name: name}
}

func meta(kind string) (metav1.TypeMeta, metav1.ObjectMeta) {
	return metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: kind}, metav1.ObjectMeta{Namespace: "ns", Name: "a"}
}

// olds returns objects of v1beta1 that use every field, also those that v1beta2 does not have.
func olds() []Object {
	machine := clusterv1beta1.MachineSpec{
		ClusterName:       "c",
		Bootstrap:         clusterv1beta1.Bootstrap{ConfigRef: ref("bootstrap", "KubeadmConfig", "b"), DataSecretName: ptr.To("")},
		InfrastructureRef: *ref("infrastructure", "InMemoryMachine", "i"),
		Version:           ptr.To("v1.34.0"), ProviderID: ptr.To("p"), FailureDomain: ptr.To("f"),
		NodeDrainTimeout: minutes(1), NodeVolumeDetachTimeout: minutes(2), NodeDeletionTimeout: minutes(0),
	}
	template := clusterv1beta1.MachineTemplateSpec{ObjectMeta: clusterv1beta1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: machine}
	conditions := clusterv1beta1.Conditions{{Type: "Ready", Status: "False", Severity: "Warning", Reason: "R", Message: "M"}}
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	var objects []Object

	m := &clusterv1beta1.Machine{Spec: machine, Status: clusterv1beta1.MachineStatus{
		NodeRef:     &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n"},
		NodeInfo:    &corev1.NodeSystemInfo{OSImage: "o"},
		LastUpdated: &now, FailureReason: ptr.To(clusterv1beta1.CreateMachineError), FailureMessage: ptr.To("m"),
		Addresses: clusterv1beta1.MachineAddresses{{Type: "InternalIP", Address: "10.0.0.1"}},
		Phase:     "Failed", CertificatesExpiryDate: &now, BootstrapReady: true, InfrastructureReady: true, ObservedGeneration: 1,
		Conditions: conditions,
	}}
	m.TypeMeta, m.ObjectMeta = meta("Machine")

	s := &clusterv1beta1.MachineSet{
		Spec: clusterv1beta1.MachineSetSpec{
			ClusterName: "c", Replicas: ptr.To[int32](0), MinReadySeconds: 3, DeletePolicy: "Newest",
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, Template: template,
		},
		Status: clusterv1beta1.MachineSetStatus{
			Selector: "a=b", Replicas: 1, FullyLabeledReplicas: 2, ReadyReplicas: 3, AvailableReplicas: 4, ObservedGeneration: 5,
			FailureReason: ptr.To(clusterv1beta1.InvalidConfigurationMachineSetError), FailureMessage: ptr.To("m"), Conditions: conditions,
		},
	}
	s.TypeMeta, s.ObjectMeta = meta("MachineSet")

	d := &clusterv1beta1.MachineDeployment{
		Spec: clusterv1beta1.MachineDeploymentSpec{
			ClusterName: "c", Replicas: ptr.To[int32](3), RolloutAfter: &now, Template: template, MinReadySeconds: ptr.To[int32](0), Paused: true,
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Strategy: &clusterv1beta1.MachineDeploymentStrategy{Type: "RollingUpdate", RollingUpdate: &clusterv1beta1.MachineRollingUpdateDeployment{
				MaxSurge: count(1), MaxUnavailable: count(0), DeletePolicy: ptr.To("Oldest"),
			}},
			RevisionHistoryLimit: ptr.To[int32](7), ProgressDeadlineSeconds: ptr.To[int32](8),
		},
		Status: clusterv1beta1.MachineDeploymentStatus{
			Selector: "a=b", Replicas: 1, UpdatedReplicas: 2, ReadyReplicas: 3, AvailableReplicas: 4, UnavailableReplicas: 5, Phase: "Running",
			ObservedGeneration: 6, Conditions: conditions,
		},
	}
	d.TypeMeta, d.ObjectMeta = meta("MachineDeployment")

	p := &clusterv1beta1.MachinePool{
		Spec: clusterv1beta1.MachinePoolSpec{
			ClusterName: "c", Replicas: ptr.To[int32](3), Template: template, MinReadySeconds: ptr.To[int32](4), ProviderIDList: []string{"p"},
			FailureDomains: []string{"f"},
		},
		Status: clusterv1beta1.MachinePoolStatus{
			NodeRefs: []corev1.ObjectReference{{Name: "n", UID: "u"}}, Replicas: 1, ReadyReplicas: 2, AvailableReplicas: 3, UnavailableReplicas: 4,
			FailureReason: ptr.To(clusterv1beta1.InvalidConfigurationMachinePoolError), FailureMessage: ptr.To("m"), Phase: "Running",
			BootstrapReady: true, InfrastructureReady: true, ObservedGeneration: 5, Conditions: conditions,
		},
	}
	p.TypeMeta, p.ObjectMeta = meta("MachinePool")

	h := &clusterv1beta1.MachineHealthCheck{
		Spec: clusterv1beta1.MachineHealthCheckSpec{
			ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			UnhealthyConditions: oldHealthCheck().UnhealthyConditions, MaxUnhealthy: count(2), UnhealthyRange: ptr.To("[1-2]"),
			NodeStartupTimeout: &metav1.Duration{Duration: 90500 * time.Millisecond}, RemediationTemplate: oldHealthCheck().RemediationTemplate,
		},
		Status: clusterv1beta1.MachineHealthCheckStatus{
			ExpectedMachines: 1, CurrentHealthy: 2, RemediationsAllowed: 3, ObservedGeneration: 4, Targets: []string{"m"}, Conditions: conditions,
		},
	}
	h.TypeMeta, h.ObjectMeta = meta("MachineHealthCheck")
	return append(objects, m, s, d, p, h, oldCluster(), oldClass())
}

func oldHealthCheck() *clusterv1beta1.MachineHealthCheckClass {
	return &clusterv1beta1.MachineHealthCheckClass{
		UnhealthyConditions: []clusterv1beta1.UnhealthyCondition{
			{Type: "Ready", Status: "Unknown", Timeout: *minutes(5)}, {Type: "Ready", Status: "False", Timeout: *minutes(0)},
		},
		MaxUnhealthy: count(2), UnhealthyRange: ptr.To("[1-2]"), NodeStartupTimeout: minutes(0),
		RemediationTemplate: ref("infrastructure", "RemediationTemplate", "r"),
	}
}

func oldStrategy() *clusterv1beta1.MachineDeploymentStrategy {
	return &clusterv1beta1.MachineDeploymentStrategy{Type: "OnDelete", RollingUpdate: &clusterv1beta1.MachineRollingUpdateDeployment{
		DeletePolicy: ptr.To("Oldest"),
	}}
}

func oldCluster() Object {
	variables := []clusterv1beta1.ClusterVariable{{Name: "v", DefinitionFrom: "inline", Value: apiextensionsv1.JSON{Raw: []byte(`{"a":1}`)}}}
	c := &clusterv1beta1.Cluster{
		Spec: clusterv1beta1.ClusterSpec{
			Paused: true,
			ClusterNetwork: &clusterv1beta1.ClusterNetwork{
				APIServerPort: ptr.To[int32](6443), ServiceDomain: "d",
				Services: &clusterv1beta1.NetworkRanges{CIDRBlocks: []string{"10.0.0.0/8"}}, Pods: &clusterv1beta1.NetworkRanges{CIDRBlocks: []string{"192.168.0.0/16"}},
			},
			ControlPlaneEndpoint: clusterv1beta1.APIEndpoint{Host: "h", Port: 1},
			ControlPlaneRef:      ref("controlplane", "KubeadmControlPlane", "k"),
			InfrastructureRef:    ref("infrastructure", "InMemoryCluster", "i"),
			Topology: &clusterv1beta1.Topology{
				Class: "q", Version: "v1.34.0", RolloutAfter: ptr.To(metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))), Variables: variables,
				ControlPlane: clusterv1beta1.ControlPlaneTopology{
					Metadata: clusterv1beta1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Replicas: ptr.To[int32](3),
					MachineHealthCheck: &clusterv1beta1.MachineHealthCheckTopology{Enable: ptr.To(false), MachineHealthCheckClass: *oldHealthCheck()},
					NodeDrainTimeout:   minutes(1), NodeVolumeDetachTimeout: minutes(2), NodeDeletionTimeout: minutes(3),
					Variables: &clusterv1beta1.ControlPlaneVariables{Overrides: variables},
				},
				Workers: &clusterv1beta1.WorkersTopology{
					MachineDeployments: []clusterv1beta1.MachineDeploymentTopology{{
						Metadata: clusterv1beta1.ObjectMeta{Annotations: map[string]string{"a": "b"}}, Class: "w", Name: "w0",
						FailureDomain: ptr.To("f"), Replicas: ptr.To[int32](2),
						MachineHealthCheck: &clusterv1beta1.MachineHealthCheckTopology{Enable: ptr.To(true), MachineHealthCheckClass: *oldHealthCheck()},
						NodeDrainTimeout:   minutes(1), NodeVolumeDetachTimeout: minutes(2), NodeDeletionTimeout: minutes(3),
						MinReadySeconds: ptr.To[int32](4), Strategy: oldStrategy(), Variables: &clusterv1beta1.MachineDeploymentVariables{Overrides: variables},
					}, {Class: "w", Name: "w1"}},
					MachinePools: []clusterv1beta1.MachinePoolTopology{{
						Class: "p", Name: "p0", FailureDomains: []string{"f"}, NodeDrainTimeout: minutes(1), NodeVolumeDetachTimeout: minutes(2),
						NodeDeletionTimeout: minutes(3), MinReadySeconds: ptr.To[int32](4), Replicas: ptr.To[int32](2),
						Variables: &clusterv1beta1.MachinePoolVariables{Overrides: variables},
					}},
				},
			},
		},
		Status: clusterv1beta1.ClusterStatus{
			FailureDomains: clusterv1beta1.FailureDomains{"a": {ControlPlane: true}, "b": {Attributes: map[string]string{"a": "b"}}},
			FailureReason:  ptr.To(clusterv1beta1.CreateClusterError), FailureMessage: ptr.To("m"), Phase: "Failed",
			InfrastructureReady: true, ControlPlaneReady: true, ObservedGeneration: 1,
			Conditions: clusterv1beta1.Conditions{{Type: "Ready", Status: "True"}},
		},
	}
	c.TypeMeta, c.ObjectMeta = meta("Cluster")
	return c
}

func oldClass() Object {
	local := func(kind string) clusterv1beta1.LocalObjectTemplate {
		return clusterv1beta1.LocalObjectTemplate{Ref: ref("infrastructure", kind, "t")}
	}
	variable := clusterv1beta1.VariableSchema{OpenAPIV3Schema: clusterv1beta1.JSONSchemaProps{
		Type: "object", Description: "d", Required: []string{"a"},
		Properties: map[string]clusterv1beta1.JSONSchemaProps{
			"a": {Type: "array", Items: &clusterv1beta1.JSONSchemaProps{Type: "string", MinLength: ptr.To[int64](1)}, UniqueItems: true},
			"b": {Type: "integer", Minimum: ptr.To[int64](0), ExclusiveMinimum: true, Default: &apiextensionsv1.JSON{Raw: []byte(`1`)}},
			"c": {Type: "object", AdditionalProperties: &clusterv1beta1.JSONSchemaProps{Type: "boolean"}, XPreserveUnknownFields: true},
		},
	}}
	m := clusterv1beta1.ClusterClassVariableMetadata{Labels: map[string]string{"a": "b"}}
	c := &clusterv1beta1.ClusterClass{
		Spec: clusterv1beta1.ClusterClassSpec{
			Infrastructure: local("ClusterTemplate"),
			ControlPlane: clusterv1beta1.ControlPlaneClass{
				Metadata: clusterv1beta1.ObjectMeta{Labels: map[string]string{"a": "b"}}, LocalObjectTemplate: local("ControlPlaneTemplate"),
				MachineInfrastructure: ptr.To(local("MachineTemplate")), MachineHealthCheck: oldHealthCheck(),
				NamingStrategy:   &clusterv1beta1.ControlPlaneClassNamingStrategy{Template: ptr.To("n")},
				NodeDrainTimeout: minutes(1), NodeVolumeDetachTimeout: minutes(2), NodeDeletionTimeout: minutes(3),
			},
			Workers: clusterv1beta1.WorkersClass{
				MachineDeployments: []clusterv1beta1.MachineDeploymentClass{{
					Class: "w", MachineHealthCheck: oldHealthCheck(), FailureDomain: ptr.To("f"),
					Template: clusterv1beta1.MachineDeploymentClassTemplate{
						Metadata: clusterv1beta1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Bootstrap: local("B"), Infrastructure: local("I"),
					},
					NamingStrategy:   &clusterv1beta1.MachineDeploymentClassNamingStrategy{Template: ptr.To("n")},
					NodeDrainTimeout: minutes(1), NodeVolumeDetachTimeout: minutes(2), NodeDeletionTimeout: minutes(3),
					MinReadySeconds: ptr.To[int32](4), Strategy: oldStrategy(),
				}},
				MachinePools: []clusterv1beta1.MachinePoolClass{{
					Class: "p", FailureDomains: []string{"f"},
					Template: clusterv1beta1.MachinePoolClassTemplate{
						Metadata: clusterv1beta1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Bootstrap: local("B"), Infrastructure: local("I"),
					},
					NamingStrategy:   &clusterv1beta1.MachinePoolClassNamingStrategy{Template: ptr.To("n")},
					NodeDrainTimeout: minutes(1), NodeVolumeDetachTimeout: minutes(2), NodeDeletionTimeout: minutes(3), MinReadySeconds: ptr.To[int32](4),
				}},
			},
			Variables: []clusterv1beta1.ClusterClassVariable{{Name: "v", Required: true, Metadata: m, Schema: variable}},
			Patches: []clusterv1beta1.ClusterClassPatch{{
				Name: "a", Description: "d", EnabledIf: ptr.To("true"), Definitions: []clusterv1beta1.PatchDefinition{{
					Selector: clusterv1beta1.PatchSelector{APIVersion: "g/v1", Kind: "K", MatchResources: clusterv1beta1.PatchSelectorMatch{
						ControlPlane: true, InfrastructureCluster: true,
						MachineDeploymentClass: &clusterv1beta1.PatchSelectorMatchMachineDeploymentClass{Names: []string{"*"}},
						MachinePoolClass:       &clusterv1beta1.PatchSelectorMatchMachinePoolClass{Names: []string{"*"}},
					}},
					JSONPatches: []clusterv1beta1.JSONPatch{
						{Op: "add", Path: "/spec/a", Value: &apiextensionsv1.JSON{Raw: []byte(`{"b":null}`)}},
						{Op: "add", Path: "/spec/b", ValueFrom: &clusterv1beta1.JSONPatchValue{Variable: ptr.To("v"), Template: ptr.To("t")}},
					},
				}},
			}, {
				Name: "b", External: &clusterv1beta1.ExternalPatchDefinition{
					GenerateExtension: ptr.To("g"), ValidateExtension: ptr.To("v"), DiscoverVariablesExtension: ptr.To("d"),
					Settings: map[string]string{"a": "b"},
				},
			}},
		},
		Status: clusterv1beta1.ClusterClassStatus{
			Variables: []clusterv1beta1.ClusterClassStatusVariable{{
				Name: "v", DefinitionsConflict: true,
				Definitions: []clusterv1beta1.ClusterClassStatusVariableDefinition{{From: "inline", Required: true, Metadata: m, Schema: variable}},
			}},
			Conditions: clusterv1beta1.Conditions{{Type: "Ready", Status: "True"}}, ObservedGeneration: 1,
		},
	}
	c.TypeMeta, c.ObjectMeta = meta("ClusterClass")
	return c
}

// Object is a typed object of any version.
type Object = client.Object

// typed converts a typed object with the kind of its name.
func typed(t *testing.T, lookup Lookup, from Object) Object {
	t.Helper()
	kind := byName(lookup)[reflect.TypeOf(from).Elem().Name()]
	convert, to := kind.ToHub, kind.Hub
	if reflect.TypeOf(kind.Hub.New()) == reflect.TypeOf(from) {
		convert, to = kind.ToSpoke, kind.Spoke
	}
	result := to.New()
	if err := convert(t.Context(), from, result); err != nil {
		t.Fatal(err)
	}
	return result
}

// forget removes the annotations of conversions.
func forget(o Object) {
	annotations := o.GetAnnotations()
	for name := range annotations {
		if strings.Contains(name, "conversion") {
			delete(annotations, name)
		}
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
}

func encoded(t *testing.T, o Object) string {
	t.Helper()
	content, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// TestEveryFieldOfV1Beta1Survives shows that clients of v1beta1 read what they wrote, and that v1beta2 stores it without the fields
// that it does not have.
func TestEveryFieldOfV1Beta1Survives(t *testing.T) {
	for _, old := range olds() {
		t.Run(old.GetObjectKind().GroupVersionKind().Kind, func(t *testing.T) {
			hub := typed(t, inMemory, old)
			got := typed(t, inMemory, hub)
			forget(got)
			if diff := cmp.Diff(parsed(t, encoded(t, old)), parsed(t, encoded(t, got))); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

// TestAnnotationOnlyWhereNeeded shows that an object which both versions represent has no annotation in either.
func TestAnnotationOnlyWhereNeeded(t *testing.T) {
	old := &clusterv1beta1.MachineSet{Spec: clusterv1beta1.MachineSetSpec{ClusterName: "c", Replicas: ptr.To[int32](1)}}
	old.TypeMeta, old.ObjectMeta = meta("MachineSet")
	hub := typed(t, inMemory, old)
	back := typed(t, inMemory, hub)
	if len(hub.GetAnnotations())+len(back.GetAnnotations()) != 0 {
		t.Errorf("annotations: %v, %v", hub.GetAnnotations(), back.GetAnnotations())
	}
}

// hubMachineDeployment has fields that v1beta1 does not have.
func hubMachineDeployment() *clusterv1.MachineDeployment {
	m := &clusterv1.MachineDeployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "MachineDeployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"},
	}
	m.Spec.ClusterName, m.Spec.Replicas, m.Spec.Paused = "c", ptr.To[int32](3), ptr.To(false)
	m.Spec.Remediation.MaxInFlight = count(1)
	m.Spec.Template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "A"}}
	m.Spec.Template.Spec.MinReadySeconds = ptr.To[int32](5)
	m.Status.UpToDateReplicas = ptr.To[int32](0)
	return m
}

// TestChangesByOlderClients shows which fields of v1beta2 remain after a client of v1beta1 has changed an object.
func TestChangesByOlderClients(t *testing.T) {
	tests := []struct {
		reason string
		change func(*clusterv1beta1.MachineDeployment)
		want   func(*clusterv1.MachineDeployment)
	}{
		{
			reason: "a client that changes nothing loses nothing, and keeps the explicit false",
			change: func(*clusterv1beta1.MachineDeployment) {},
			want:   func(*clusterv1.MachineDeployment) {},
		},
		{
			reason: "another field changes alone",
			change: func(m *clusterv1beta1.MachineDeployment) { m.Spec.Replicas = ptr.To[int32](4) },
			want:   func(m *clusterv1.MachineDeployment) { m.Spec.Replicas = ptr.To[int32](4) },
		},
		{
			reason: "what the client removes is removed",
			change: func(m *clusterv1beta1.MachineDeployment) { m.Spec.MinReadySeconds, m.Spec.Replicas = nil, nil },
			want: func(m *clusterv1.MachineDeployment) {
				m.Spec.Template.Spec.MinReadySeconds, m.Spec.Replicas = nil, nil
			},
		},
		{
			reason: "true replaces the explicit false",
			change: func(m *clusterv1beta1.MachineDeployment) { m.Spec.Paused = true },
			want:   func(m *clusterv1.MachineDeployment) { m.Spec.Paused = ptr.To(true) },
		},
		{
			reason: "an invalid annotation is ignored, and what only it had is lost",
			change: func(m *clusterv1beta1.MachineDeployment) {
				m.Annotations[clusterv1.ConversionDataAnnotation] = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineDeployment","spec":1}`
			},
			want: func(m *clusterv1.MachineDeployment) {
				m.Spec.Paused = nil
			},
		},
		{
			reason: "so is an annotation with another kind",
			change: func(m *clusterv1beta1.MachineDeployment) {
				data := m.Annotations[clusterv1.ConversionDataAnnotation]
				m.Annotations[clusterv1.ConversionDataAnnotation] = strings.Replace(data, `"kind":"MachineDeployment"`, `"kind":"MachineSet"`, 1)
			},
			want: func(m *clusterv1.MachineDeployment) {
				m.Spec.Paused = nil
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			old := typed(t, inMemory, hubMachineDeployment())
			tt.change(old.(*clusterv1beta1.MachineDeployment))
			got := typed(t, inMemory, old)
			want := hubMachineDeployment()
			tt.want(want)
			forget(got)
			if diff := cmp.Diff(parsed(t, encoded(t, want)), parsed(t, encoded(t, got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestListsOfATopology shows that groups of workers are matched by name when a client of v1beta1 changes the list.
func TestListsOfATopology(t *testing.T) {
	group := func(name string, gate string) clusterv1.MachineDeploymentTopology {
		return clusterv1.MachineDeploymentTopology{
			Class: "w", Name: name, Replicas: ptr.To[int32](1), ReadinessGates: []clusterv1.MachineReadinessGate{{ConditionType: gate}},
		}
	}
	hub := &clusterv1.Cluster{
		TypeMeta: metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"},
	}
	hub.Spec.Topology.ClassRef, hub.Spec.Topology.Version = clusterv1.ClusterClassRef{Name: "q", Namespace: "classes"}, "v1.34.0"
	hub.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{group("a", "A"), group("b", "B"), group("c", "C")}
	down := typed(t, inMemory, hub)
	old := down.(*clusterv1beta1.Cluster)
	groups := old.Spec.Topology.Workers.MachineDeployments
	groups[2].Replicas = ptr.To[int32](5)
	old.Spec.Topology.Workers.MachineDeployments = append([]clusterv1beta1.MachineDeploymentTopology{{Class: "w", Name: "new"}}, groups[2], groups[0])

	got := typed(t, inMemory, old)
	want := hub.DeepCopy()
	changed := group("c", "C")
	changed.Replicas = ptr.To[int32](5)
	want.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{Class: "w", Name: "new"}, changed, group("a", "A")}
	if diff := cmp.Diff(Object(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPhaseUpdating(t *testing.T) {
	hub := &clusterv1.Machine{TypeMeta: metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Machine"}}
	hub.Status.Phase = "Updating"
	old := typed(t, inMemory, hub)
	if got := old.(*clusterv1beta1.Machine).Status.Phase; got != "Running" {
		t.Errorf("v1beta1 shows phase %q, want Running", got)
	}
	back := typed(t, inMemory, old)
	if got := back.(*clusterv1.Machine).Status.Phase; got != "Updating" {
		t.Errorf("v1beta2 has phase %q, want Updating", got)
	}
}

func TestReferences(t *testing.T) {
	hub := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	hub.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "g.io", Kind: "K", Name: "n"}
	none := func(context.Context, schema.GroupKind) (string, bool) { return "", false }
	old := typed(t, none, hub)
	want := corev1.ObjectReference{APIVersion: "g.io/v1beta1", Kind: "K", Namespace: "ns", Name: "n"}
	if diff := cmp.Diff(want, old.(*clusterv1beta1.Machine).Spec.InfrastructureRef); diff != "" {
		t.Errorf("a provider that is not installed (-want +got):\n%s", diff)
	}
	if old.GetAnnotations() != nil {
		t.Errorf("version and namespace of references are no reason for an annotation: %v", old.GetAnnotations())
	}
}

// TestRemovedReference shows that nothing of a reference remains, also not its UID, which v1beta2 does not have.
func TestRemovedReference(t *testing.T) {
	m := &clusterv1beta1.MachineHealthCheck{TypeMeta: metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "MachineHealthCheck"}}
	m.Spec.NodeStartupTimeout = &metav1.Duration{Duration: time.Second / 2} // v1beta2 cannot represent it.
	m.Spec.RemediationTemplate = ref("infrastructure", "T", "t")
	m.Spec.RemediationTemplate.UID = "u"
	up := typed(t, inMemory, m)
	hub := up.(*clusterv1.MachineHealthCheck)
	hub.Spec.Remediation = clusterv1.MachineHealthCheckRemediation{}
	down := typed(t, inMemory, hub)
	got := down.(*clusterv1beta1.MachineHealthCheck)
	if got.Spec.RemediationTemplate != nil || got.Spec.NodeStartupTimeout.Duration != time.Second/2 {
		t.Errorf("got template %v and timeout %s", got.Spec.RemediationTemplate, got.Spec.NodeStartupTimeout.Duration)
	}
}
