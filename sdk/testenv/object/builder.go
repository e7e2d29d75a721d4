package object

import (
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Now returns the time of fake clocks and of Deleting.
func Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Builder builds the objects of one Cluster in a namespace.
type Builder struct {
	// Namespace defaults to "default".
	Namespace string
	// ClusterName defaults to "c".
	ClusterName string
}

// Meta returns the metadata of an object of the Cluster: namespace, name, label of the Cluster, generation 1, and a UID that is unique
// for kind and name ("machine-m" for Machine m). It is for kinds that have no function here, such as those of the provider under test.
func (b Builder) Meta(kind, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: b.namespace(), Name: name, UID: UID(kind, name), Generation: 1,
		Labels: map[string]string{clusterv1.ClusterNameLabel: b.cluster()},
	}
}

// UID returns the UID of an object.
func UID(kind, name string) types.UID { return types.UID(strings.ToLower(kind) + "-" + name) }

func (b Builder) namespace() string {
	if b.Namespace == "" {
		return "default"
	}
	return b.Namespace
}

func (b Builder) cluster() string {
	if b.ClusterName == "" {
		return "c"
	}
	return b.ClusterName
}

// Cluster returns the Cluster.
func (b Builder) Cluster(with ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	obj := &clusterv1.Cluster{ObjectMeta: b.Meta(clusterv1.ClusterKind, b.cluster())}
	obj.Spec.ClusterNetwork.ServiceDomain = "cluster.local" // A Cluster must have a spec. This is what it has by default.
	obj.Labels = nil
	return changed(obj, with)
}

// Machine returns a Machine of the Cluster.
func (b Builder) Machine(name string, with ...func(*clusterv1.Machine)) *clusterv1.Machine {
	return changed(&clusterv1.Machine{
		ObjectMeta: b.Meta(clusterv1.MachineKind, name), Spec: clusterv1.MachineSpec{ClusterName: b.cluster()},
	}, with)
}

// MachineSet returns a MachineSet whose selector matches its template. The number of replicas is not set.
func (b Builder) MachineSet(name string, with ...func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
	labels := map[string]string{clusterv1.MachineSetNameLabel: name}
	return changed(&clusterv1.MachineSet{ObjectMeta: b.Meta(clusterv1.MachineSetKind, name), Spec: clusterv1.MachineSetSpec{
		ClusterName: b.cluster(), Selector: metav1.LabelSelector{MatchLabels: labels}, Template: b.template(labels),
	}}, with)
}

// MachineDeployment returns a MachineDeployment whose selector matches its template. The number of replicas is not set.
func (b Builder) MachineDeployment(name string, with ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
	labels := map[string]string{clusterv1.ClusterNameLabel: b.cluster(), clusterv1.MachineDeploymentNameLabel: name}
	return changed(&clusterv1.MachineDeployment{
		ObjectMeta: b.Meta(clusterv1.MachineDeploymentKind, name),
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: b.cluster(), Selector: metav1.LabelSelector{MatchLabels: labels}, Template: b.template(labels),
		},
	}, with)
}

// MachinePool returns a MachinePool. The number of replicas is not set.
func (b Builder) MachinePool(name string, with ...func(*clusterv1.MachinePool)) *clusterv1.MachinePool {
	return changed(&clusterv1.MachinePool{ObjectMeta: b.Meta(clusterv1.MachinePoolKind, name), Spec: clusterv1.MachinePoolSpec{
		ClusterName: b.cluster(), Template: b.template(nil),
	}}, with)
}

// MachineHealthCheck returns a MachineHealthCheck for all Machines of the Cluster, without conditions.
func (b Builder) MachineHealthCheck(name string, with ...func(*clusterv1.MachineHealthCheck)) *clusterv1.MachineHealthCheck {
	return changed(&clusterv1.MachineHealthCheck{
		ObjectMeta: b.Meta(clusterv1.MachineHealthCheckKind, name),
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: b.cluster(), Selector: metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.ClusterNameLabel: b.cluster()}},
		},
	}, with)
}

// template returns a template of Machines with copies of labels.
func (b Builder) template(labels map[string]string) clusterv1.MachineTemplateSpec {
	return clusterv1.MachineTemplateSpec{
		ObjectMeta: clusterv1.ObjectMeta{Labels: maps.Clone(labels)}, Spec: clusterv1.MachineSpec{ClusterName: b.cluster()},
	}
}

// BootstrapData returns the Secret with the bootstrap data of a Machine, which refers to it in spec.bootstrap.dataSecretName.
func (b Builder) BootstrapData(name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: b.Meta("Secret", name), Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": []byte(value), "format": []byte("cloud-config")},
	}
}

// Fields are the fields of an object.
type Fields = map[string]any

// Provided returns an object of a provider, with copies of fields.
func (b Builder) Provided(kind schema.GroupVersionKind, name string, fields Fields) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: Fields{}}
	if fields != nil {
		u.Object = runtime.DeepCopyJSON(fields)
	}
	meta := b.Meta(kind.Kind, name)
	u.SetGroupVersionKind(kind)
	u.SetNamespace(meta.Namespace)
	u.SetName(meta.Name)
	u.SetUID(meta.UID)
	u.SetGeneration(meta.Generation)
	u.SetLabels(meta.Labels)
	return u
}

// Template returns a template of a provider, such as an infrastructure machine template, with an empty spec.
func (b Builder) Template(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	return b.Provided(kind, name, Fields{"spec": Fields{"template": Fields{"spec": Fields{}}}})
}

func changed[T client.Object](obj T, with []func(T)) T {
	for _, change := range with {
		change(obj)
	}
	return obj
}
