package inspect

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/packages/manifest"
)

func TestCheck(t *testing.T) {
	const rbac = "apiVersion: rbac.authorization.k8s.io/v1\n"
	const allow = `to allow it, set the annotation operator.cluster.x-k8s.io/allow-all-permissions: "true" on the object that declares the provider`
	const everything = rbac + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}, {apiGroups: ['*'], resources: ['*'], verbs: ['*']}]"
	for _, tc := range []struct {
		reason, manifest string
		allow            bool
		want             string
	}{
		{"an ordinary role", rbac + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: ['', infrastructure.cluster.x-k8s.io], resources: ['*'], verbs: [get, list, create]}]", false, ""},
		{"an ordinary binding", rbac + "kind: ClusterRoleBinding\nmetadata: {name: r}\nroleRef: {name: r}\nsubjects: [{kind: ServiceAccount, name: s, namespace: place}]", false, ""},
		{"all permissions in its namespace", rbac + "kind: Role\nmetadata: {name: r, namespace: place}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]", false, ""},
		{"rules that others aggregate", rbac + "kind: ClusterRole\nmetadata: {name: r}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\nrules: []", false, ""},
		{"all permissions", everything, false, "ClusterRole r grants all permissions (rule 2): " + allow},
		{"all permissions, allowed", everything, true, ""},
		{"roles of its choice", rbac + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: ['*']}]", false,
			"ClusterRole r grants permission to write roles with any permissions (rule 1): " + allow},
		{"users of its choice", rbac + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [users], verbs: [impersonate]}]", false,
			"ClusterRole r grants permission to impersonate users (rule 1): " + allow},
		{"cluster-admin", rbac + "kind: ClusterRoleBinding\nmetadata: {name: b}\nroleRef: {name: cluster-admin}\nsubjects: [{kind: ServiceAccount, name: s, namespace: place}]", false,
			"ClusterRoleBinding b grants cluster-admin: " + allow},
		{"permissions of users, allowed or not", rbac + "kind: RoleBinding\nmetadata: {name: b, namespace: place}\nroleRef: {name: r}\nsubjects: [{kind: Group, name: 'system:unauthenticated'}]", true,
			"RoleBinding place/b grants permissions to Group system:unauthenticated: only ServiceAccounts of the provider may have them"},
		{"a role of Kubernetes", rbac + "kind: ClusterRole\nmetadata: {name: 'system:node'}\nrules: []", true, "ClusterRole system:node would replace what Kubernetes defines"},
		{"a role of users", rbac + "kind: ClusterRole\nmetadata: {name: edit}\nrules: []", true, "ClusterRole edit would replace what Kubernetes defines"},
		{"a rule that cannot be read", rbac + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: '*'}]", false, "ClusterRole r is invalid: "},
		{"a provider that declares providers", "apiVersion: operator.cluster.x-k8s.io/v1alpha2\nkind: CoreProvider\nmetadata: {name: c, namespace: place}", true,
			"CoreProvider place/c declares a provider: only administrators may"},
		{"the inventory", "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Provider\nmetadata: {name: c, namespace: place}", true,
			"Provider place/c is a part of the inventory, which the operator writes itself"},
		{"a new object each time", "apiVersion: v1\nkind: Secret\nmetadata: {generateName: s-, namespace: place}", true, "Secret place/ has no metadata.name"},
		{"an object of another provider", "apiVersion: v1\nkind: Service\nmetadata: {name: taken, namespace: place}", true, "Service place/taken belongs to provider cluster-api"},
		{"its own object", "apiVersion: v1\nkind: Service\nmetadata: {name: own, namespace: place}", false, ""},
		{"the namespace of several providers", "apiVersion: v1\nkind: Namespace\nmetadata: {name: taken}", false, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			objects, err := manifest.Parse([]byte(tc.manifest))
			if err != nil {
				t.Fatal(err)
			}
			owner := func(k manifest.Key) string {
				return map[string]string{"taken": "cluster-api", "own": "infrastructure-x"}[k.Name]
			}
			err = Check(objects, Options{Owner: owner, Label: "infrastructure-x", AllPermissions: tc.allow})
			if got := strings.TrimPrefix(fmt.Sprint(err), "the components are refused: "); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (err == nil) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestHugeComponents(t *testing.T) {
	if err := Check(make([]unstructured.Unstructured, maxObjects+1), Options{}); err == nil || !strings.Contains(err.Error(), "2001 objects") {
		t.Errorf("got %v", err)
	}
}
