package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
)

// object returns an object of a kind in namespace "ns", with owners as "Kind/name".
func object(group, kind, name string, owners ...string) Object {
	o := Object{Unstructured: &unstructured.Unstructured{}, Kind: Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Namespaced: true}}
	o.SetGroupVersionKind(o.Kind.GroupVersionKind)
	o.SetNamespace("ns")
	o.SetName(name)
	o.SetUID(types.UID(kind + "/" + name))
	var refs []metav1.OwnerReference
	for _, owner := range owners {
		ownerKind, ownerName, _ := strings.Cut(owner, "/")
		refs = append(refs, metav1.OwnerReference{Kind: ownerKind, Name: ownerName, UID: types.UID(owner)})
	}
	o.SetOwnerReferences(refs)
	return o
}

func clusterScoped(o Object) Object {
	o.SetNamespace("")
	o.Kind.Namespaced = false
	return o
}

func labeled(o Object, label string) Object {
	o.SetLabels(map[string]string{label: ""})
	return o
}

func with(o Object, value string, path ...string) Object {
	if err := unstructured.SetNestedField(o.Unstructured.Object, value, path...); err != nil {
		panic(err)
	}
	return o
}

func TestBuild(t *testing.T) {
	const infra, ipam = "infrastructure.cluster.x-k8s.io", "ipam.cluster.x-k8s.io"
	c := object(coreGroup, "Cluster", "c")
	pool := clusterScoped(object(ipam, "GlobalPool", "p"))
	moveKind, hierarchyKind := object(infra, "Identity", "i"), clusterScoped(object(infra, "ClusterIdentity", "i"))
	moveKind.Kind.Move, hierarchyKind.Kind.Hierarchy = true, true
	globalPool := pool
	globalPool.Kind.Hierarchy = true
	tests := []struct {
		reason  string
		objects []Object
		want    []string // level, kind and name; "global" at the end
	}{
		{"what a Cluster owns is moved after it, through any number of owners", []Object{
			object(infra, "InfraMachine", "m", "Machine/m"), object(coreGroup, "Machine", "m", "Cluster/c"), c,
		}, []string{"0 Cluster/c", "1 Machine/m", "2 InfraMachine/m"}},
		{"an object with several owners comes after all of them", []Object{
			c, object(coreGroup, "Machine", "m", "Cluster/c"), object("", "Secret", "s", "Cluster/c", "Machine/m"),
		}, []string{"0 Cluster/c", "1 Machine/m", "2 Secret/s"}},
		{"rules of drains are moved, although nothing owns them: the target must drain as the source did", []Object{
			c, object(coreGroup, "MachineDrainRule", "jobs"),
		}, []string{"0 Cluster/c", "0 MachineDrainRule/jobs"}},
		{"objects without an owner are not moved", []Object{object("", "ConfigMap", "x"), object("", "Secret", "x"), object(infra, "Template", "x")}, nil},
		{"Secrets with the names of certificates belong to the Cluster", []Object{
			c, object("", "Secret", "c-ca"), object("", "Secret", "c-etcd"), object("", "Secret", "c-proxy"), object("", "Secret", "c-sa"), object("", "Secret", "c-kubeconfig"),
		}, []string{"0 Cluster/c", "1 Secret/c-ca", "1 Secret/c-etcd", "1 Secret/c-kubeconfig", "1 Secret/c-proxy", "1 Secret/c-sa"}},
		{"so does the client certificate for external etcd; what is no purpose does not", []Object{
			object(coreGroup, "Cluster", "a-b"), object("", "Secret", "a-b-ca"), object("", "Secret", "a-b-apiserver-etcd-client"), object("", "Secret", "a-b-etcd-client"), object("", "Secret", "a-ca"), object("", "Secret", "ca"),
		}, []string{"0 Cluster/a-b", "1 Secret/a-b-apiserver-etcd-client", "1 Secret/a-b-ca"}},
		{"a Secret with an owner belongs to that one alone", []Object{c, object("", "Secret", "c-ca", "Other/o")}, []string{"0 Cluster/c"}},
		{"a Secret in another namespace does not belong to a Cluster", []Object{c, with(object("", "Secret", "c-ca"), "other", "metadata", "namespace")}, []string{"0 Cluster/c"}},
		{"a Cluster comes after its class, the templates of the class do, too", []Object{
			with(object(coreGroup, "Cluster", "c"), "k", "spec", "topology", "class"), object(coreGroup, "ClusterClass", "k"), object(infra, "Template", "t", "ClusterClass/k"),
		}, []string{"0 ClusterClass/k", "1 Cluster/c", "1 Template/t"}},
		{"so does a Cluster in v1beta2", []Object{
			with(object(coreGroup, "Cluster", "c"), "k", "spec", "topology", "classRef", "name"), object(coreGroup, "ClusterClass", "k"),
		}, []string{"0 ClusterClass/k", "1 Cluster/c"}},
		{"a class with the same name in another namespace is another one", []Object{
			with(with(object(coreGroup, "Cluster", "c"), "k", "spec", "topology", "class"), "shared", "spec", "topology", "classNamespace"), object(coreGroup, "ClusterClass", "k"),
		}, []string{"0 Cluster/c", "0 ClusterClass/k"}},
		{"a binding comes after its Cluster and its sets", []Object{
			c, object(addonsGroup, "ClusterResourceSet", "s"), object("", "ConfigMap", "m", "ClusterResourceSet/s"),
			with(object(addonsGroup, "ClusterResourceSetBinding", "c", "ClusterResourceSet/s"), "c", "spec", "clusterName"),
		}, []string{"0 ClusterResourceSet/s", "0 Cluster/c", "1 ConfigMap/m", "1 ClusterResourceSetBinding/c"}},
		{"the label move is for the object alone", []Object{
			labeled(object("", "Secret", "x"), clusterctlv1.ClusterctlMoveLabel), object("", "Secret", "y", "Secret/x"),
		}, []string{"0 Secret/x"}},
		{"the label move-hierarchy is for what the object owns, too", []Object{
			labeled(object("", "Secret", "x"), clusterctlv1.ClusterctlMoveHierarchyLabel), object("", "Secret", "y", "Secret/x"),
		}, []string{"0 Secret/x", "1 Secret/y"}},
		{"labels of a CRD are for all its objects", []Object{moveKind, hierarchyKind, object("", "Secret", "s", "ClusterIdentity/i"), object("", "Secret", "t", "Identity/i")},
			[]string{"0 ClusterIdentity/i global", "0 Identity/i", "1 Secret/s global"}},
		{"cluster-scoped objects without label are not moved", []Object{pool}, nil},
		{"an address of a Machine is not global because its pool is", []Object{
			globalPool, c, object(coreGroup, "Machine", "m", "Cluster/c"), object(ipam, "Claim", "m", "Machine/m"), object(ipam, "Address", "m", "Claim/m", "GlobalPool/p"),
		}, []string{"0 Cluster/c", "0 GlobalPool/p global", "1 Machine/m", "2 Claim/m", "3 Address/m"}},
		{"an owner that is not moved does not count", []Object{c, object("", "ConfigMap", "x"), object("", "Secret", "s", "ConfigMap/x", "Cluster/c")}, []string{"0 Cluster/c", "1 Secret/s"}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			g, err := Build(tc.objects)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, transcript(g)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func transcript(g *Graph) []string {
	var lines []string
	for _, n := range g.Nodes {
		line := fmt.Sprintf("%d %s/%s", n.Level, n.Kind.Kind, n.GetName())
		if n.Global {
			line += " global"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestBuildRejectsCycles(t *testing.T) {
	_, err := Build([]Object{object(coreGroup, "Cluster", "c", "Machine/m"), object(coreGroup, "Machine", "m", "Cluster/c")})
	if err == nil || !strings.Contains(err.Error(), "Cluster ns/c is owned by Machine ns/m is owned by Cluster ns/c") {
		t.Errorf("the error shows the cycle, got %v", err)
	}
}

func TestBelow(t *testing.T) {
	g, err := Below([]Object{
		object(coreGroup, "Cluster", "c"), object(coreGroup, "Machine", "m", "Cluster/c"), object(coreGroup, "Cluster", "d"),
		labeled(object("", "Secret", "x"), clusterctlv1.ClusterctlMoveLabel),
	}, func(o Object) bool { return o.GetName() == "c" })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0 Cluster/c", "1 Machine/m"}, transcript(g)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What is not moved, but has the label of a Cluster or is named by what is moved, is said to stay behind.
func TestLeftBehind(t *testing.T) {
	const infra = "infrastructure.cluster.x-k8s.io"
	inLabel := func(o Object, cluster string) Object {
		o.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": cluster})
		return o
	}
	identity := object(infra, "InfraCluster", "c", "Cluster/c")
	identity.Unstructured.Object["spec"] = map[string]any{
		"identityRef": map[string]any{"kind": "Secret", "name": "identity"}, "credentialsRef": map[string]any{"name": "credentials"}, "secretName": "named",
		"files":     []any{map[string]any{"contentFrom": map[string]any{"secret": map[string]any{"name": "file", "key": "k"}}}, map[string]any{"contentFrom": map[string]any{"configMapRef": map[string]any{"name": "file"}}}},
		"elsewhere": map[string]any{"kind": "Secret", "name": "elsewhere", "namespace": "other"}, "ownRef": map[string]any{"kind": "Secret", "name": "c-ca"}, "name": "unrelated",
	}
	check := object(coreGroup, "MachineHealthCheck", "mhc", "Cluster/c")
	check.Unstructured.Object["spec"] = map[string]any{
		"remediationTemplate": map[string]any{"apiVersion": infra + "/v1beta1", "kind": "RemediationTemplate", "name": "reboot"},
		"remediation":         map[string]any{"templateRef": map[string]any{"apiGroup": infra, "kind": "RemediationTemplate", "name": "replace"}},
	}
	data := object(infra, "DataTemplate", "data")
	data.Unstructured.Object["spec"] = map[string]any{"clusterName": "c"}
	objects := []Object{
		check, data, object(infra, "RemediationTemplate", "reboot"), object(infra, "RemediationTemplate", "replace"), object(infra, "RemediationTemplate", "unused"),
		object(coreGroup, "Cluster", "c"), identity, object("", "Secret", "c-ca"), inLabel(object("", "Secret", "c-cloud"), "c"), inLabel(object("", "ConfigMap", "d-cloud"), "d"),
		object("", "Secret", "identity"), object("", "Secret", "credentials"), object("", "Secret", "named"), object("", "Secret", "file"), object("", "ConfigMap", "file"),
		object("", "Secret", "elsewhere"), object("", "Secret", "unrelated"), object("", "ConfigMap", "kube-root-ca.crt"),
	}
	g, err := Build(objects)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range LeftBehind(objects, g, "ns") {
		got = append(got, l.Kind+"/"+l.Name+" "+l.Why)
	}
	const names = "the spec of InfraCluster ns/c names it"
	const checks = "the spec of MachineHealthCheck ns/mhc names it"
	want := []string{
		"ConfigMap/file " + names, "DataTemplate/data its spec.clusterName is that of Cluster ns/c", "RemediationTemplate/reboot " + checks, "RemediationTemplate/replace " + checks, "Secret/c-cloud it has the label cluster.x-k8s.io/cluster-name of Cluster ns/c", "Secret/credentials " + names, "Secret/file " + names,
		"Secret/identity " + names, "Secret/named " + names, "ConfigMap/d-cloud ", "Secret/elsewhere ", "Secret/unrelated ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Shared ClusterClasses and their templates are copied and stay; what else belongs to the same namespace is moved.
func TestBuildShared(t *testing.T) {
	shared := func(o Object) Object {
		o.Shared = true
		return o
	}
	const infra = "infrastructure.cluster.x-k8s.io"
	elsewhere := func(o Object) Object {
		o.SetNamespace("classes")
		return o
	}
	user := object(coreGroup, "Cluster", "c")
	user.Unstructured.Object["spec"] = map[string]any{"topology": map[string]any{"class": "far", "classNamespace": "classes"}}
	g, err := Build([]Object{
		user, object(infra, "InfraCluster", "c", "Cluster/c"),
		shared(elsewhere(object(coreGroup, "ClusterClass", "far"))), shared(elsewhere(object(infra, "Template", "referenced"))),
		shared(object(coreGroup, "ClusterClass", "near")), object(coreGroup, "ClusterClass", "own"),
		object(infra, "Template", "both", "ClusterClass/near", "ClusterClass/own"), object(infra, "Template", "own", "ClusterClass/own"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0 ClusterClass/far global", "0 ClusterClass/near global", "0 ClusterClass/own", "0 Template/referenced global",
		"1 Cluster/c", "1 Template/both global", "1 Template/own", "2 InfraCluster/c",
	}
	got := transcript(g)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
