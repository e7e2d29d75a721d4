package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/takeover/difference"
)

// Result is what our managers would write.
type Result struct {
	// Clusters is how many Clusters were copied, and Objects how many objects.
	Clusters int `json:"clusters"`
	Objects  int `json:"objects"`
	// Writes are the objects that would be written.
	Writes []Write `json:"writes"`
	// WorkloadClusters are the requests to workload clusters that would write, as "NAMESPACE/CLUSTER: VERB PATH".
	WorkloadClusters []string `json:"workloadClusters"`
	// Failed are the objects that our managers could not reconcile: what else they would write is open.
	Failed []Failure `json:"failed"`
	// Notes are what else a user may want to know.
	Notes []Note `json:"notes"`
}

// Failure is an object whose last reconcile failed.
type Failure struct {
	// Controller is the name of the controller.
	Controller string `json:"controller"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Error      string `json:"error"`
}

// Write is an object that would be written.
type Write struct {
	Kind      string            `json:"kind"`
	Group     string            `json:"group,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name"`
	Effect    difference.Effect `json:"effect"`
	// Fields are those of difference.Object. There are none if an object is created, deleted, or if only its managed fields change.
	Fields []string `json:"fields,omitempty"`
	// Managers are the managers of fields whose managed fields change, if nothing else does.
	Managers []string `json:"managers,omitempty"`
}

// Note is what is no write.
type Note struct {
	// About is such as "permissions".
	About string `json:"about"`
	Text  string `json:"text"`
	// Items are all that the note is about; the text has some.
	Items []string `json:"items,omitempty"`
}

// Machines returns how many Machines would be created or deleted.
func (r *Result) Machines() int {
	n := 0
	for _, w := range r.Writes {
		if w.Kind == clusterv1.MachineKind && w.Group == domain && w.Effect != difference.Changed {
			n++
		}
	}
	return n
}

// ExitCode returns the exit status of the command: 3 if Machines would be created or deleted, 2 if something else would be written, 4 if
// some objects could not be reconciled, or 0.
func (r *Result) ExitCode() int {
	switch {
	case r.Machines() > 0:
		return 3
	case len(r.Writes)+len(r.WorkloadClusters) > 0:
		return 2
	case len(r.Failed) > 0:
		return 4
	}
	return 0
}

// result compares the copy with what is left of it.
func (r *run) result(before, after map[string]difference.Stored) (*Result, error) {
	objects, err := difference.Compare(before, after, parse)
	if err != nil {
		return nil, fmt.Errorf("comparing the copy: %w", err)
	}
	s := &selection{facts: r.source.facts, unread: map[types.NamespacedName]bool{}, etcd: map[types.NamespacedName]bool{}}
	for _, cluster := range r.workloads.unread() {
		s.unread[keyFrom(cluster)] = true
	}
	for cluster := range r.workloads.etcd() {
		s.etcd[keyFrom(cluster)] = true
	}
	result := &Result{
		Clusters: len(r.source.facts.clusters), Objects: len(r.source.objects),
		Writes: []Write{}, WorkloadClusters: r.workloads.writes(), Failed: r.observer.failures(), Notes: []Note{},
	}
	for _, o := range objects {
		w := r.source.facts.named(o)
		content := after[o.Key].Content
		if content == nil {
			content = before[o.Key].Content
		}
		parsed, err := parse(content)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", o.Key, err)
		}
		if s.isComputed(&w, &o, &unstructured.Unstructured{Object: parsed}) {
			result.Writes = append(result.Writes, w)
		}
	}
	result.Notes = r.notes(s)
	slices.SortStableFunc(result.Writes, func(a, b Write) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return result, nil
}

// named returns the write of an object, with its kind.
func (f *facts) named(o difference.Object) Write {
	w := Write{Effect: o.Effect, Fields: o.Fields}
	if len(o.Fields) == 0 && o.Effect == difference.Changed {
		w.Managers = o.Managers
	}
	path := strings.TrimPrefix(o.Key, registry)
	for r, folder := range builtIn {
		if rest, ok := strings.CutPrefix(path, folder+"/"); ok {
			w.Kind, w.Group = kinds[r.Resource], r.Group
			w.Namespace, w.Name = splitName(rest)
			return w
		}
	}
	parts := strings.SplitN(path, "/", 3)
	if len(parts) < 3 {
		w.Kind, w.Name = parts[0], path
		return w
	}
	w.Kind, w.Group = cmp.Or(f.kinds[parts[0]+"/"+parts[1]], parts[0]+"/"+parts[1]), parts[0]
	w.Namespace, w.Name = splitName(parts[2])
	return w
}

func splitName(rest string) (namespace, name string) {
	namespace, name, ok := strings.Cut(rest, "/")
	if !ok {
		return "", namespace
	}
	return namespace, name
}

// kinds are the kinds of Kubernetes that are copied.
var kinds = map[string]string{ // a constant table
	"namespaces": "Namespace", "secrets": "Secret", "configmaps": "ConfigMap", "serviceaccounts": "ServiceAccount", "services": "Service",
	"deployments": "Deployment", "roles": "Role", "rolebindings": "RoleBinding", "clusterroles": "ClusterRole",
	"clusterrolebindings": "ClusterRoleBinding", "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
	"validatingwebhookconfigurations": "ValidatingWebhookConfiguration", "customresourcedefinitions": "CustomResourceDefinition",
}

// selection decides which differences are writes. The rule: creations, deletions, metadata and spec always are. Of statuses, those are
// not computed that depend on what the copy cannot know:
//
//   - the status of a Cluster whose workload cluster was not read, and of its objects;
//   - the status of ClusterClasses with patches of extensions, of their Clusters, and of ExtensionConfigs;
//   - the conditions about etcd of a Cluster whose control plane asks etcd about its health, of that control plane and of its Machines, and
//     whether Cluster and control plane are available.
type selection struct {
	facts        *facts
	unread, etcd map[types.NamespacedName]bool
	// What is not computed, by the reason, and the objects whose status changed and changed back.
	unreadSkipped, etcdSkipped, extensionSkipped, passing []string
}

// isComputed removes from a write what is not computed, and reports whether something is left.
func (s *selection) isComputed(w *Write, o *difference.Object, content *unstructured.Unstructured) bool {
	if w.Effect != difference.Changed {
		return true
	}
	name := w.Kind + " " + types.NamespacedName{Namespace: w.Namespace, Name: w.Name}.String()
	cluster := types.NamespacedName{Namespace: w.Namespace, Name: content.GetLabels()[clusterv1.ClusterNameLabel]}
	if w.Kind == clusterv1.ClusterKind && w.Group == domain {
		cluster.Name = w.Name
	}
	skip := func(prefixes []string, skipped *[]string) {
		w.Fields = slices.DeleteFunc(slices.Clone(w.Fields), func(field string) bool {
			found := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(field[2:], p) })
			if found {
				*skipped = append(*skipped, name+" "+field)
			}
			return found
		})
	}
	status := []string{".status"}
	if s.unread[cluster] {
		skip(status, &s.unreadSkipped)
	}
	class := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
	isClass := w.Kind == clusterv1.ClusterClassKind && s.facts.external[class]
	if isClass || w.Kind == "ExtensionConfig" || s.facts.external[s.facts.classes[cluster]] {
		skip(status, &s.extensionSkipped)
	}
	if s.etcd[cluster] && slices.Contains([]string{clusterv1.ClusterKind, clusterv1.MachineKind, "KubeadmControlPlane"}, w.Kind) {
		skip(ofEtcd(), &s.etcdSkipped)
	}
	switch {
	case len(w.Fields) > 0 || len(o.Fields) == 0 && !o.Times && slices.ContainsFunc(o.Managers, isOfObject):
		return true
	case len(o.Fields) == 0:
		s.passing = append(s.passing, name)
	}
	return false
}

// isOfObject reports whether a manager of fields, as in difference.Object, has written more than a status.
func isOfObject(manager string) bool { return !strings.HasSuffix(manager, " status") }

// ofEtcd returns the prefixes of the conditions, and of the counters of Machines, that depend on the health of etcd.
func ofEtcd() []string {
	prefixes := []string{
		".status.readyReplicas", ".status.availableReplicas", ".status.v1beta2.readyReplicas", ".status.v1beta2.availableReplicas",
		".status.controlPlane.readyReplicas", ".status.controlPlane.availableReplicas",
		".status.v1beta2.controlPlane.readyReplicas", ".status.v1beta2.controlPlane.availableReplicas",
	}
	for _, conditions := range []string{".status.conditions", ".status.v1beta2.conditions", ".status.deprecated.v1beta1.conditions"} {
		for _, condition := range []string{"Available", "ControlPlaneAvailable", "EtcdClusterHealthy", "EtcdMemberHealthy"} {
			prefixes = append(prefixes, conditions+"["+condition+"]")
		}
	}
	return prefixes
}
