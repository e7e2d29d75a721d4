package journey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

const (
	// capacityPrefix is the prefix of annotations by which users tell the cluster autoscaler what Nodes of a group have.
	capacityPrefix = "capacity.cluster-autoscaler.kubernetes.io/"
	// oldDeletion is the old name of the annotation delete-machine, which the cluster autoscaler still sets.
	oldDeletion = "cluster.k8s.io/delete-machine"
)

// autoscalerRules are the permissions of the cluster autoscaler in the management cluster, as in docs/book/autoscaler.md.
func autoscalerRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{"cluster.x-k8s.io"},
			Resources: []string{"machinedeployments", "machinesets", "machinepools", "machines"},
			Verbs:     []string{"get", "list", "update", "watch"},
		},
		{
			APIGroups: []string{"cluster.x-k8s.io"},
			Resources: []string{"machinedeployments/scale", "machinesets/scale", "machinepools/scale"},
			Verbs:     []string{"get", "update"},
		},
		{APIGroups: []string{"infrastructure.cluster.x-k8s.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
	}
}

// Autoscaler makes the requests of the cluster autoscaler to a management cluster, in the same order and with its permissions: with
// CAPI_VERSION=v1beta1, it watches MachineDeployments, MachineSets, MachinePools and Machines, reads infrastructure
// templates, and uses the scale subresource. When to scale is up to the test.
type Autoscaler struct {
	w       *World
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	scales  scale.ScalesGetter
	listers map[string]informers.GenericInformer // by resource
}

// Autoscaler runs until the test ends.
func (w *World) Autoscaler() *Autoscaler {
	w.t.Helper()
	a := &Autoscaler{w: w, listers: map[string]informers.GenericInformer{}}
	if err := a.start(w.autoscalerConfig()); err != nil {
		w.t.Fatalf("starting the autoscaler: %v", err)
	}
	return a
}

// autoscalerConfig grants permissions to a ServiceAccount, and returns a connection as this account.
func (w *World) autoscalerConfig() *rest.Config {
	w.t.Helper()
	const name = "cluster-autoscaler"
	w.Applied(
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: autoscalerRules()},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: name}},
		})
	config := rest.CopyConfig(w.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + w.Namespace + ":" + name, Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	return config
}

func (a *Autoscaler) start(config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	a.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	if a.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	if a.scales, err = scale.NewForConfig(config, a.mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(client)); err != nil {
		return err
	}
	ctx := a.w.t.Context()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(a.dynamic, 0, a.w.Namespace, nil)
	for _, kind := range []string{"machinedeployments", "machinesets", "machinepools", "machines"} {
		a.listers[kind] = factory.ForResource(clusterv1.GroupVersion.WithResource(kind))
		_ = a.listers[kind].Informer() // Start only starts informers that were requested.
	}
	factory.Start(ctx.Done())
	for resource, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%s are not listed", resource.Resource)
		}
	}
	return nil
}

// list returns all cached objects of a resource.
func (a *Autoscaler) list(kind string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	_ = toolscache.ListAll(a.listers[kind].Informer().GetStore(), labels.Everything(), func(o any) {
		found = append(found, o.(runtime.Object).(*unstructured.Unstructured))
	}) // It never fails.
	return found
}

// nodeGroup is an object with both limits, which the cluster autoscaler scales.
type nodeGroup struct {
	*unstructured.Unstructured
	autoscaler *Autoscaler
	min, max   int
}

// group returns a node group by the name of its object, after the autoscaler has seen it.
func (a *Autoscaler) group(name string) (*nodeGroup, error) {
	for _, kind := range []string{"machinedeployments", "machinesets", "machinepools"} {
		for _, o := range a.list(kind) {
			annotations := o.GetAnnotations()
			least, hasLeast := annotations[clusterv1.AutoscalerMinSizeAnnotation]
			most, hasMost := annotations[clusterv1.AutoscalerMaxSizeAnnotation]
			if o.GetName() != name || !hasLeast || !hasMost || owner(o, "MachineDeployment") != "" {
				continue
			}
			g := &nodeGroup{Unstructured: o, autoscaler: a}
			var errs [2]error
			g.min, errs[0] = strconv.Atoi(least)
			g.max, errs[1] = strconv.Atoi(most)
			return g, errors.Join(errs[:]...)
		}
	}
	return nil, fmt.Errorf("the autoscaler has no node group %s", name)
}

// owner returns the name of the owner of a kind, empty if there is none.
func owner(o client.Object, kind string) string {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == kind {
			return ref.Name
		}
	}
	return ""
}

// machines returns the Machines of the group.
func (g *nodeGroup) machines() []*unstructured.Unstructured {
	kind, owners := "MachineSet", []string{g.GetName()}
	switch g.GetKind() {
	case clusterv1.MachinePoolKind:
		kind = clusterv1.MachinePoolKind
	case "MachineDeployment":
		owners = nil
		for _, set := range g.autoscaler.list("machinesets") {
			if owner(set, "MachineDeployment") == g.GetName() {
				owners = append(owners, set.GetName())
			}
		}
	}
	return slices.DeleteFunc(g.autoscaler.list("machines"),
		func(m *unstructured.Unstructured) bool { return !slices.Contains(owners, owner(m, kind)) })
}

// instances returns the provider IDs of the group. Machines that failed permanently before they had one are listed by name, so that
// they are not waited for.
func (g *nodeGroup) instances() []string {
	var ids []string
	for _, m := range g.machines() {
		id, _, _ := unstructured.NestedString(m.Object, "spec", "providerID")
		if failure, _, _ := unstructured.NestedString(m.Object, "status", "failureMessage"); failure != "" && id == "" {
			id = "failed-machine-" + m.GetNamespace() + "_" + m.GetName()
		}
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// template returns a Node as a new one of the group would be: annotations take precedence over the infrastructure template.
func (g *nodeGroup) template(ctx context.Context) (*corev1.Node, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
	ref, _, err := unstructured.NestedStringMap(g.Object, "spec", "template", "spec", "infrastructureRef")
	if err != nil {
		return nil, err
	}
	kind := schema.FromAPIVersionAndKind(ref["apiVersion"], ref["kind"])
	mapping, err := g.autoscaler.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	infrastructure, err := g.autoscaler.dynamic.Resource(mapping.Resource).Namespace(g.GetNamespace()).Get(ctx, ref["name"],
		metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	status := struct {
		Status struct {
			Capacity corev1.ResourceList `json:"capacity"`
		} `json:"status"`
	}{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(infrastructure.Object, &status); err != nil {
		return nil, err
	}
	node.Status.Capacity = status.Status.Capacity.DeepCopy()
	if node.Status.Capacity == nil {
		node.Status.Capacity = corev1.ResourceList{}
	}
	return node, g.annotated(node)
}

// annotated applies the annotations of the group to its template.
func (g *nodeGroup) annotated(node *corev1.Node) error {
	for annotation, name := range map[string]corev1.ResourceName{
		"cpu":            corev1.ResourceCPU,
		"memory":         corev1.ResourceMemory,
		"ephemeral-disk": corev1.ResourceEphemeralStorage,
		"maxPods":        corev1.ResourcePods,
	} {
		text, ok := g.GetAnnotations()[capacityPrefix+annotation]
		if !ok {
			continue
		}
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return err
		}
		node.Status.Capacity[name] = quantity
	}
	if text := g.GetAnnotations()[capacityPrefix+"labels"]; text != "" {
		set, err := labels.ConvertSelectorToLabelsMap(text)
		if err != nil {
			return err
		}
		node.Labels = set
	}
	for _, text := range strings.FieldsFunc(g.GetAnnotations()[capacityPrefix+"taints"], func(r rune) bool { return r == ',' }) {
		pair, effect, _ := strings.Cut(text, ":")
		key, value, _ := strings.Cut(pair, "=")
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return nil
}

// resize sets the number of replicas with the scale subresource, within the limits of the group.
func (g *nodeGroup) resize(ctx context.Context, change func(replicas int32) int32) error {
	kind := g.GroupVersionKind()
	mapping, err := g.autoscaler.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	scales, resource := g.autoscaler.scales.Scales(g.GetNamespace()), mapping.Resource.GroupResource()
	// The autoscaler tries again in its next loop, if a controller has written the object meanwhile.
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := scales.Get(ctx, resource, g.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Spec.Replicas = change(current.Spec.Replicas)
		if n := int(current.Spec.Replicas); n < g.min || n > g.max {
			return fmt.Errorf("%d replicas of %s are outside of the limits %d and %d", n, g.GetName(), g.min, g.max)
		}
		_, err = scales.Update(ctx, resource, current, metav1.UpdateOptions{})
		return err
	})
}

// deleteNode marks the Machine of a Node, which is found by the last part of its provider ID, and lowers the number of replicas.
func (g *nodeGroup) deleteNode(ctx context.Context, node *corev1.Node) (machine string, err error) {
	last := func(id string) string { return id[strings.LastIndex(id, "/")+1:] }
	for _, m := range g.machines() {
		id, _, _ := unstructured.NestedString(m.Object, "spec", "providerID")
		if id == "" || last(id) != last(node.Spec.ProviderID) {
			continue
		}
		if err := g.markForDeletion(ctx, m); err != nil {
			return "", err
		}
		return m.GetName(), g.resize(ctx, func(n int32) int32 { return n - 1 })
	}
	return "", fmt.Errorf("Node %s has no Machine in %s", node.Name, g.GetName())
}

// markForDeletion annotates a Machine, so that it is deleted when the number of replicas is lowered.
func (g *nodeGroup) markForDeletion(ctx context.Context, m *unstructured.Unstructured) error {
	machines := g.autoscaler.dynamic.Resource(clusterv1.GroupVersion.WithResource("machines")).Namespace(m.GetNamespace())
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live, err := machines.Get(ctx, m.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		annotations := live.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[clusterv1.DeleteMachineAnnotation], annotations[oldDeletion] = time.Now().String(), time.Now().String()
		live.SetAnnotations(annotations)
		_, err = machines.Update(ctx, live, metav1.UpdateOptions{})
		return err
	})
}
