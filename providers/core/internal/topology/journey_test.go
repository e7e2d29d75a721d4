package topology

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

func infrastructure(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha1", Kind: kind}
}

func topologyKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		infrastructure("InMemoryCluster"), infrastructure("InMemoryMachineTemplate"),
		{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta1", Kind: "KubeadmControlPlane"},
		{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta1", Kind: "KubeadmConfigTemplate"},
		clusterv1.GroupVersion.WithKind("MachineDeployment"),
		clusterv1.GroupVersion.WithKind("MachineHealthCheck"),
	}
}

// suffixes matches the derived suffixes of names.
func suffixes() *regexp.Regexp { return regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}$`) }

// summary lists the objects of a Cluster as "Kind name owner", with XXXXX for the derived suffixes of names.
func (w *world) summary(c *clusterv1.Cluster) []string {
	w.t.Helper()
	var all []string
	for _, u := range w.objects(c) {
		owner := "orphaned"
		if refs := u.GetOwnerReferences(); len(refs) == 1 && refs[0].UID == c.UID {
			owner = "owned"
			if metav1.IsControlledBy(&u, c) {
				owner = "controlled"
			}
		}
		all = append(all, strings.Join([]string{u.GetKind(), suffixes().ReplaceAllString(u.GetName(), "-XXXXX"), owner}, " "))
	}
	return all
}

// objects returns the objects of a Cluster's topology, by kind and name.
func (w *world) objects(c *clusterv1.Cluster) []unstructured.Unstructured {
	w.t.Helper()
	var all []unstructured.Unstructured
	for _, kind := range topologyKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := w.List(w.t.Context(), list, plan.Labeled(c)...); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, list.Items...)
	}
	return all
}

func (w *world) one(kind, prefix string, c *clusterv1.Cluster) *unstructured.Unstructured {
	w.t.Helper()
	for _, u := range w.objects(c) {
		if u.GetKind() == kind && suffixes().ReplaceAllString(u.GetName(), "") == prefix {
			return &u
		}
	}
	w.t.Fatalf("%s %s-XXXXX does not exist: %v", kind, prefix, w.summary(c))
	return nil
}

// normalized replaces derived suffixes in requests and drops reads, which are of schemas.
func normalized(requests []string) []string {
	var out []string
	for _, r := range requests {
		if !strings.HasPrefix(r, "GET ") {
			out = append(out, suffixes().ReplaceAllString(r, "-XXXXX"))
		}
	}
	slices.Sort(out)
	return out
}

func fieldOf(u *unstructured.Unstructured, path string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(path, ".")...)
	return value
}

func (w *world) expect(what string, want, got any) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s, -want +got:\n%s", what, diff)
	}
}

func TestClusterOfAClass(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.expect("one write for each object, one for the Cluster's metadata, one for its status", []string{
		"PATCH clusters/c", "PATCH clusters/c/status",
		"PATCH inmemoryclusters/c-XXXXX",
		"PATCH inmemorymachinetemplates/c-XXXXX", "PATCH inmemorymachinetemplates/c-md-0-XXXXX",
		"PATCH kubeadmconfigtemplates/c-md-0-XXXXX",
		"PATCH kubeadmcontrolplanes/c-XXXXX",
		"PATCH machinedeployments/c-md-0-XXXXX",
		"PATCH machinehealthchecks/c-XXXXX", "PATCH machinehealthchecks/c-md-0-XXXXX",
	}, normalized(w.reconciled(c)))
	w.expect("the objects", []string{
		"InMemoryCluster c-XXXXX controlled",
		"InMemoryMachineTemplate c-XXXXX owned", "InMemoryMachineTemplate c-md-0-XXXXX owned",
		"KubeadmControlPlane c-XXXXX controlled",
		"KubeadmConfigTemplate c-md-0-XXXXX owned",
		"MachineDeployment c-md-0-XXXXX owned",
		"MachineHealthCheck c-XXXXX owned", "MachineHealthCheck c-md-0-XXXXX owned",
	}, sortedByKind(w.summary(c)))
	w.expect("a Cluster that is up to date costs no requests", []string(nil), w.reconciled(c))
	w.expect("finalizers of the Cluster", []string{clusterv1.ClusterFinalizer}, c.Finalizers)
	w.expect("labels of the Cluster", map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.ClusterTopologyOwnedLabel: ""}, c.Labels)
	if !condition.IsTrue(c, clusterv1.TopologyReconciledV1Beta1Condition) {
		t.Errorf("conditions = %v", c.GetV1Beta1Conditions())
	}
	cp, md := w.one("KubeadmControlPlane", "c", c), w.one("MachineDeployment", "c-md-0", c)
	if c.Spec.InfrastructureRef.Name != w.one("InMemoryCluster", "c", c).GetName() || c.Spec.ControlPlaneRef.Name != cp.GetName() {
		t.Errorf("references: %v, %v", c.Spec.InfrastructureRef, c.Spec.ControlPlaneRef)
	}
	cpLabels := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.ClusterTopologyOwnedLabel: "", "of": "class", "from": "topology"}
	w.expect("labels of the topology override those of the class", cpLabels, cp.GetLabels())
	w.expect("the control plane's machines have its labels", asAny(cpLabels), fieldOf(cp, "spec.machineTemplate.metadata.labels"))
	w.expect("the control plane's template", w.one("InMemoryMachineTemplate", "c", c).GetName(), fieldOf(cp, "spec.machineTemplate.infrastructureRef.name"))
	w.expect("version and replicas", []any{"v1.30.0", int64(1)}, []any{fieldOf(cp, "spec.version"), fieldOf(cp, "spec.replicas")})
	selector := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: "md-0"}
	w.expect("the selector of the MachineDeployment", asAny(selector), fieldOf(md, "spec.selector.matchLabels"))
	w.expect("the finalizer of the MachineDeployment", []string{clusterv1.MachineDeploymentTopologyFinalizer}, md.GetFinalizers())
	worker := w.one("InMemoryMachineTemplate", "c-md-0", c)
	w.expect("patches are applied", "10s", fieldOf(worker, "spec.template.spec.behaviour.vm.provisioning.startupDuration"))
	w.expect("labels of a template", "small", worker.GetLabels()["tier"])
	w.expect("one event", 1, len(w.events.Events))
	text, named := <-w.events.Events, []string{}
	for _, u := range w.objects(c) {
		named = append(named, u.GetKind()+" "+u.GetName())
	}
	slices.Sort(named)
	w.expect("the event lists every object", "Normal TopologyCreate Topology of Cluster c: created "+strings.Join(named, ", "), text)
}

func TestClusterBeforeItsClass(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	c.Spec.Topology.ClassRef.Name = "later"
	w.created(c)
	w.reconciled(c) // without an error, which would be logged and retried
	got := condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition)
	if got == nil || got.Reason != "ClusterClassNotReconciled" || !strings.Contains(got.Message, "ClusterClass "+w.namespace+"/later does not exist") {
		t.Errorf("condition = %v", got)
	}
	class := &clusterv1.ClusterClass{}
	if err := w.Get(t.Context(), w.key("simple"), class); err != nil {
		t.Fatal(err)
	}
	class.ObjectMeta = metav1.ObjectMeta{Namespace: w.namespace, Name: "later"}
	if err := w.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	w.reconciledClass("later")
	w.reconciled(c)
	w.expect("objects once the class exists", 8, len(w.summary(c)))
}

func sortedByKind(all []string) []string {
	rank := map[string]int{}
	for i, kind := range topologyKinds() {
		rank[kind.Kind] = i
	}
	slices.SortStableFunc(all, func(a, b string) int {
		if d := rank[strings.Fields(a)[0]] - rank[strings.Fields(b)[0]]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return all
}

func asAny(m map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func TestChangesOfTheTopology(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	md := func() *clusterv1.MachineDeploymentTopology { return &c.Spec.Topology.Workers.MachineDeployments[0] }
	no := false
	for _, tc := range []struct {
		reason string
		change func(*clusterv1.Cluster)
		want   []string
	}{
		{"labels change in place", func(*clusterv1.Cluster) {
			md().Metadata.Labels = map[string]string{"a": "b"}
		}, []string{"PATCH machinedeployments/c-md-0-XXXXX"}},
		{"replicas change in place", func(*clusterv1.Cluster) { *md().Replicas = 3 }, []string{"PATCH machinedeployments/c-md-0-XXXXX"}},
		{"unset replicas are not applied", func(*clusterv1.Cluster) {
			md().Replicas = nil
		}, []string{"PATCH machinedeployments/c-md-0-XXXXX"}},
		{"annotations that control upgrades are not propagated", func(*clusterv1.Cluster) {
			md().Metadata.Annotations = map[string]string{clusterv1.ClusterTopologyDeferUpgradeAnnotation: ""}
		}, nil},
		{"a health check is disabled", func(*clusterv1.Cluster) {
			md().HealthCheck = clusterv1.MachineDeploymentTopologyHealthCheck{Enabled: &no}
		}, []string{"DELETE machinehealthchecks/c-md-0-XXXXX"}},
		{"a health check is enabled again", func(*clusterv1.Cluster) {
			md().HealthCheck = clusterv1.MachineDeploymentTopologyHealthCheck{}
		}, []string{"PATCH machinehealthchecks/c-md-0-XXXXX"}},
		{"a variable that a template uses: a new template, and the old one is deleted as no MachineSet uses it", func(*clusterv1.Cluster) {
			c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"20s"`)}}
		}, []string{
			"DELETE inmemorymachinetemplates/c-md-0-XXXXX", "DRY-RUN inmemorymachinetemplates/c-md-0-XXXXX",
			"PATCH inmemorymachinetemplates/c-md-0-XXXXX", "PATCH machinedeployments/c-md-0-XXXXX",
		}},
		{"more workers", func(*clusterv1.Cluster) {
			c.Spec.Topology.Workers.MachineDeployments = append(c.Spec.Topology.Workers.MachineDeployments,
				clusterv1.MachineDeploymentTopology{Class: "worker", Name: "md-1"})
			w.provisioned(c)
		}, []string{
			"PATCH inmemorymachinetemplates/c-md-1-XXXXX", "PATCH kubeadmconfigtemplates/c-md-1-XXXXX",
			"PATCH machinedeployments/c-md-1-XXXXX", "PATCH machinehealthchecks/c-md-1-XXXXX",
		}},
		{"fewer workers", func(*clusterv1.Cluster) {
			c.Spec.Topology.Workers.MachineDeployments = c.Spec.Topology.Workers.MachineDeployments[:1]
		}, []string{"DELETE machinedeployments/c-md-1-XXXXX", "DELETE machinehealthchecks/c-md-1-XXXXX"}},
	} {
		change := tc.change
		changed(w, c, func(c *clusterv1.Cluster) { change(c) })
		w.expect(tc.reason, tc.want, withoutStatus(normalized(w.reconciled(c))))
		w.expectSteady(c, tc.reason)
	}
}

// expectSteady waits until deletions are cached, and expects no more requests.
func (w *world) expectSteady(c *clusterv1.Cluster, after string) {
	w.t.Helper()
	w.expectCached(c, after)
	w.expect("after: "+after+": no more requests", []string(nil), w.reconciled(c))
}

// expectCached waits until the controller's cache has the current objects of a Cluster's topology.
func (w *world) expectCached(c *clusterv1.Cluster, after string) {
	w.t.Helper()
	w.eventually("the cache is up to date after: "+after, func() error {
		for _, kind := range topologyKinds() {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := w.List(w.t.Context(), list, plan.Labeled(c)...); err != nil {
				return err
			}
			for _, u := range list.Items {
				seen := u.DeepCopy()
				if err := w.cached.Get(w.t.Context(), client.ObjectKeyFromObject(&u), seen); err != nil || seen.GetResourceVersion() != u.GetResourceVersion() {
					return fmt.Errorf("%s %s: %w", kind.Kind, u.GetName(), err)
				}
			}
			cached := &unstructured.UnstructuredList{}
			cached.SetGroupVersionKind(kind)
			if err := w.cached.List(w.t.Context(), cached, plan.Labeled(c)...); err != nil || len(cached.Items) != len(list.Items) {
				return fmt.Errorf("%d %s in the cache, want %d: %w", len(cached.Items), kind.Kind, len(list.Items), err)
			}
		}
		return nil
	})
}

// withoutStatus drops the write of the Cluster's status.
func withoutStatus(requests []string) []string {
	return slices.DeleteFunc(requests, func(r string) bool { return strings.HasPrefix(r, "PATCH clusters/c/status") })
}

// provisioned sets the status of the control plane to the version and replicas of its spec.
func (w *world) provisioned(c *clusterv1.Cluster) {
	w.t.Helper()
	cp := w.one("KubeadmControlPlane", "c", c)
	replicas := fieldOf(cp, "spec.replicas")
	cp.Object["status"] = map[string]any{
		"version": fieldOf(cp, "spec.version"), "initialized": true, "ready": true,
		"replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "unavailableReplicas": int64(0),
	}
	if err := w.Status().Update(w.t.Context(), cp); err != nil {
		w.t.Fatal(err)
	}
	w.waitCached(cp)
}

func TestChangesOfTheClass(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	template := func(name string, change func(*unstructured.Unstructured)) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(infrastructure("InMemoryMachineTemplate"))
		u.SetNamespace(w.namespace)
		u.SetName(name)
		changed(w, u, change)
	}
	startup := []string{"spec", "template", "spec", "behaviour", "vm", "provisioning", "startupJitter"}
	before := w.one("InMemoryMachineTemplate", "c", c).GetName()
	template("cp-machine", func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"new": "label"})
	})
	w.expect("labels of a template change in place", []string{"PATCH inmemorymachinetemplates/c-XXXXX"}, normalized(w.reconciled(c)))
	w.expect("the same template", before, w.one("InMemoryMachineTemplate", "c", c).GetName())
	template("cp-machine", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "0.5", startup...)
	})
	w.expect("a changed spec replaces the template", []string{
		"DELETE inmemorymachinetemplates/c-XXXXX", "DRY-RUN inmemorymachinetemplates/c-XXXXX",
		"PATCH inmemorymachinetemplates/c-XXXXX", "PATCH kubeadmcontrolplanes/c-XXXXX",
	}, normalized(w.reconciled(c)))
	w.expectSteady(c, "rotation")
	rotated := w.one("InMemoryMachineTemplate", "c", c)
	w.expect("the name is kept", false, rotated.GetName() == before)
	w.expect("the reference", rotated.GetName(), fieldOf(w.one("KubeadmControlPlane", "c", c), "spec.machineTemplate.infrastructureRef.name"))
	w.expect("the content", "0.5", fieldOf(rotated, strings.Join(startup, ".")))

	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "simple"}}
	if err := w.Get(t.Context(), w.key("simple"), class); err != nil {
		t.Fatal(err)
	}
	other := class.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Namespace: w.namespace, Name: "other"}
	other.Spec.ControlPlane.Metadata.Labels = map[string]string{"of": "another-class"}
	if err := w.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Topology.ClassRef.Name = "other" })
	w.eventually("the other class is reconciled", func() error {
		_, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		if got := w.one("KubeadmControlPlane", "c", c).GetLabels()["of"]; got != "another-class" {
			return fmt.Errorf("label of = %q: %w", got, err)
		}
		return err
	})
	w.expect("a rebase keeps names", rotated.GetName(), w.one("InMemoryMachineTemplate", "c", c).GetName())
	names := maps.Collect(func(yield func(string, bool) bool) {
		for _, u := range w.objects(c) {
			yield(u.GetKind()+u.GetName(), true)
		}
	})
	w.expect("a rebase creates no objects", 8, len(names))
	w.optionalPatch(c)
}

// optionalPatch turns a patch on and off that adds the only entry of a map of the control plane.
func (w *world) optionalPatch(c *clusterv1.Cluster) {
	w.t.Helper()
	const extraArgs = "spec.kubeadmConfigSpec.clusterConfiguration.apiServer.extraArgs"
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(controlplanev1beta1.GroupVersion.WithKind("KubeadmControlPlaneTemplate"))
	template.SetNamespace(w.namespace)
	template.SetName("cp")
	changed(w, template, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedMap(u.Object, map[string]any{}, strings.Split("spec.template."+extraArgs, ".")...)
	})
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "other"}}
	changed(w, class, func(class *clusterv1.ClusterClass) {
		class.Spec.Variables = append(class.Spec.Variables, clusterv1.ClusterClassVariable{
			Name: "audit", Required: ptr.To(false), Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{Type: "boolean"}},
		})
		enabledIf, value, path := "{{ .audit }}", raw(`"/var/log/audit.log"`), "/spec/template/"+strings.ReplaceAll(extraArgs, ".", "/")+"/audit-log-path"
		class.Spec.Patches = append(class.Spec.Patches, clusterv1.ClusterClassPatch{Name: "audit", EnabledIf: enabledIf, Definitions: []clusterv1.PatchDefinition{{
			Selector: clusterv1.PatchSelector{
				APIVersion: class.Spec.ControlPlane.TemplateRef.APIVersion, Kind: class.Spec.ControlPlane.TemplateRef.Kind, MatchResources: clusterv1.PatchSelectorMatch{ControlPlane: ptr.To(true)},
			},
			JSONPatches: []clusterv1.JSONPatch{{Op: "add", Path: path, Value: &value}},
		}}})
	})
	w.reconciledClass("other")
	for _, audit := range []string{"true", "false", "true", "false"} {
		changed(w, c, func(c *clusterv1.Cluster) {
			c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"10s"`)}, {Name: "audit", Value: raw(audit)}}
		})
		w.reconciled(c)
		want := map[string]any{"audit-log-path": "/var/log/audit.log"}
		if audit == "false" {
			want = map[string]any{}
		}
		w.expect("audit is "+audit, want, fieldOf(w.one("KubeadmControlPlane", "c", c), extraArgs))
		w.expectSteady(c, "audit is "+audit)
	}
}

// TestAnIncompatibleClass changes a class in a way that its webhook would reject. The Cluster's condition reports it: that is a
// write of the status, which webhooks do not reject.
func TestAnIncompatibleClass(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	made := w.revisions(c)
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "simple"}}
	changed(w, class, func(class *clusterv1.ClusterClass) { class.Spec.Workers.MachineDeployments[0].Class = "renamed" })
	w.reconciledClass("simple")

	want := `MachineDeployment "md-0" of the topology has class "worker", which ClusterClass ` + w.namespace + "/simple does not define"
	if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("err = %v, want an error with %s", err, want)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	got := condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition)
	if got == nil || got.Reason != clusterv1.TopologyReconcileFailedV1Beta1Reason || !strings.Contains(got.Message, want) {
		t.Errorf("condition = %v, want one with %s", got, want)
	}
	w.expect("nothing is changed or deleted", made, w.revisions(c))
}
