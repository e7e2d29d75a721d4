package inspect

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

func TestCheck(t *testing.T) {
	const rbac = "apiVersion: rbac.authorization.k8s.io/v1\n"
	const allow = `to allow it, set the annotation operator.cluster.x-k8s.io/allow-all-permissions: "true" on the object that declares the provider`
	const roleR = rbac + "kind: ClusterRole\nmetadata: {name: r}\nrules: []\n---\n"
	const everything = rbac + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}, {apiGroups: ['*'], resources: ['*'], verbs: ['*']}]"
	for _, tc := range []struct {
		reason, manifest string
		allow            bool
		want             string
	}{
		{"an ordinary role", rbac + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [secrets, configmaps], verbs: ['*']}, {apiGroups: [infrastructure.cluster.x-k8s.io], resources: ['*'], verbs: [get, list, create]}]", false, ""},
		{"an ordinary binding", roleR + rbac + "kind: ClusterRoleBinding\nmetadata: {name: r}\nroleRef: {name: r}\nsubjects: [{kind: ServiceAccount, name: s, namespace: place}]", false, ""},
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
		{"what a provider has left that is gone", "apiVersion: v1\nkind: Service\nmetadata: {name: left, namespace: place}", false, ""},
		{"an object of nobody", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: foreign}", true,
			"CustomResourceDefinition foreign exists already, and is of no provider: if it is of this one, set its label: " +
				"kubectl label customresourcedefinition.apiextensions.k8s.io foreign cluster.x-k8s.io/provider=infrastructure-x"},
		{"an object of nobody in its namespace", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own-too, namespace: place}", false, ""},
		{"a part of another program", rbac + "kind: ClusterRole\nmetadata: {name: part}\nrules: []", true, "ClusterRole part would replace a part of cert-manager"},
		{"the namespace of several providers", "apiVersion: v1\nkind: Namespace\nmetadata: {name: taken}", false, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			objects, err := manifest.Parse([]byte(tc.manifest))
			if err != nil {
				t.Fatal(err)
			}
			o := world()
			o.AllPermissions = tc.allow
			err = Check(objects, o)
			if got := strings.TrimPrefix(fmt.Sprint(err), "the components are refused: "); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (err == nil) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// world is a management cluster in which infrastructure-x is inspected.
func world() Options {
	return Options{
		Label:     "infrastructure-x",
		Installed: func(label string) bool { return label == "cluster-api" },
		Find: func(o *unstructured.Unstructured) (live.Owner, error) {
			return map[string]live.Owner{
				"taken": {Provider: "cluster-api"}, "own": {Provider: "infrastructure-x"}, "left": {Provider: "infrastructure-gone"},
				"foreign": {Exists: true}, "part": {Exists: true, Part: "cert-manager"},
			}[o.GetName()], nil
		},
		Roles: roles,
	}
}

// roles are those of the management cluster.
func roles() ([]rbacv1.ClusterRole, error) {
	role := func(name string, labels map[string]string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
		return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: rules}
	}
	rule := func(groups, resources, verbs string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ",")}
	}
	system := map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}
	loop := role("loop", nil, rule("rbac.authorization.k8s.io", "clusterroles", "bind"))
	loop.Rules[0].ResourceNames = []string{"loop"}
	return []rbacv1.ClusterRole{
		role("cluster-admin", system, rule("*", "*", "*")),
		role("admin", system, rule("", "serviceaccounts", "impersonate"), rule("apps", "deployments", "create,update")),
		role("view", system, rule("", "pods,services", "get,list,watch")),
		role("system:auth-delegator", system, rule("authentication.k8s.io", "tokenreviews", "create")),
		role("system:controller:clusterrole-aggregation-controller", system, rule("rbac.authorization.k8s.io", "clusterroles", "escalate,get,list,patch,update,watch")),
		role("system:controller:generic-garbage-collector", system, rule("*", "*", "delete,get,list,patch,update,watch")),
		role("capi-operator-manager-role", nil, rule("*", "*", "*")),
		role("harmless", map[string]string{"a": "b", "cluster.x-k8s.io/aggregate-to-manager": "true"}, rule("x.io", "*", "*")),
		role("mighty", map[string]string{"c": "d", "cluster.x-k8s.io/aggregate-to-manager": "true"}, rule("*", "*", "*")),
		loop,
	}, nil
}

func TestHugeComponents(t *testing.T) {
	if err := Check(make([]unstructured.Unstructured, maxObjects+1), Options{}); err == nil || !strings.Contains(err.Error(), "2001 objects") {
		t.Errorf("got %v", err)
	}
}
