package inspect

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

const rbacVersion = "apiVersion: rbac.authorization.k8s.io/v1\n"

// TestPermissionsInEffect: what ServiceAccounts of a provider can do, and what they can acquire, decides; not how the rules are written.
func TestPermissionsInEffect(t *testing.T) { //nolint:funlen // A table.
	named := func(name, rules string) string {
		return rbacVersion + "kind: ClusterRole\nmetadata: {name: " + name + "}\nrules: [" + rules + "]\n"
	}
	role := func(rules string) string { return named("r", rules) }
	rule := func(groups, resources, verbs string) string {
		return role("{apiGroups: [" + groups + "], resources: [" + resources + "], verbs: [" + verbs + "]}")
	}
	bind := func(name string) string {
		return rbacVersion + "kind: ClusterRoleBinding\nmetadata: {name: b}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: '" + name +
			"'}\nsubjects: [{kind: ServiceAccount, name: s, namespace: place}]\n"
	}
	aggregates := func(selector string) string {
		return rbacVersion + "kind: ClusterRole\nmetadata: {name: r}\naggregationRule: {clusterRoleSelectors: [" + selector + "]}\nrules: []\n"
	}
	labeled := func(label, groups string) string {
		return strings.Replace(rule(groups, "secrets", "get, list"), "{name: r}", "{name: r, labels: {"+label+": 'true'}}", 1)
	}
	webhook := func(kind, groups string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: w}\nwebhooks: [{name: a.b.io, rules: [{apiGroups: [" + groups +
			"], apiVersions: ['*'], resources: [nothing], operations: ['*']}]}]\n"
	}
	pod := func(account string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: place}\nspec: {template: {spec: {serviceAccountName: " + account + "}}}\n"
	}
	const others, impersonate, tokens = "r grants permission to write roles with any permissions", "r grants permission to impersonate users", "r grants permission to request tokens"
	const pods, exec, certificates = "r grants permission to run Pods with any ServiceAccount", "r grants permission to run commands in any Pod", "r grants permission to issue certificates"
	for _, tc := range []struct{ reason, manifest, want string }{
		// The hostile releases of an audit.
		{"star", rule("'*'", "'*'", "'*'"), "r grants all permissions (rule 1)"},
		{"impersonate-sa", rule("''", "serviceaccounts", "impersonate"), impersonate},
		{"bind-operator-role", bind("capi-operator-manager-role"), "b grants ClusterRole capi-operator-manager-role, and so all permissions (its rule 1)"},
		{"all-verbs-listed", rule("'*'", "'*'", "get, list, watch, create, update, patch, delete, deletecollection"), "r grants permission to get, list, watch, create, update, patch, delete, deletecollection all objects"},
		{"token-request", rule("''", "serviceaccounts/token", "create"), tokens},
		{"split-star", rule("'', apps, batch, rbac.authorization.k8s.io, admissionregistration.k8s.io", "'*'", "create, get, list, update, patch"), tokens},
		{"aggregation", aggregates("{}"), "r grants the permissions of all ClusterRoles"},
		{"to-everybody", labeled("rbac.authorization.k8s.io/aggregate-to-view", "''"), "r grants permissions for what is not of the provider to all users with the ClusterRole view (rule 1)"},
		{"approve-csr", rule("certificates.k8s.io", "certificatesigningrequests, certificatesigningrequests/approval, signers", "create, get, update, approve, sign"), certificates},
		{"sa-of-others", bind("admin"), "b grants ClusterRole admin, and so permission to impersonate users (its rule 1)"},
		{"webhook-all", webhook("MutatingWebhookConfiguration", "'*'"), `w would change objects of others while they are written (API group "*")`},
		{"admission-policy", "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec: {matchConstraints: {resourceRules: [{apiGroups: [x.io]}]}}", ""},
		{"foreign-crd", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: foreign}\n", "foreign exists already, and is of no provider"},
		{"foreign-ns", "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system}\n", ""}, // Components have that of their provider.
		{"priv-node", "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv}\nspec: {hostPath: {path: /}}\n", "pv is a file system of a Node"},
		{"apiservice", "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.evil.example.com}\nspec: {group: evil.example.com}\n", ""}, // A group of its own.

		// Others of the same kind.
		{"tokens of all kinds of objects", rule("''", "'*/token'", "create"), tokens},
		{"tokens, by all API groups", rule("'*'", "serviceaccounts/token", "create"), tokens},
		{"tokens with a name", role("{apiGroups: [''], resources: [serviceaccounts/token], resourceNames: [capi-operator-manager], verbs: [create]}"), tokens},
		{"all verbs for ServiceAccounts", rule("''", "serviceaccounts", "'*'"), impersonate},
		{"constrained impersonation", rule("authentication.k8s.io", "users", "'impersonate:user-info'"), impersonate},
		{"extras", rule("authentication.k8s.io", "userextras/scopes", "impersonate"), impersonate},
		{"UIDs", rule("authentication.k8s.io", "uids", "impersonate"), impersonate},
		{"a user with a name", role("{apiGroups: [''], resources: [groups], resourceNames: ['system:masters'], verbs: [impersonate]}"), impersonate},
		{"all verbs for roles", rule("rbac.authorization.k8s.io", "roles", "'*'"), others},
		{"escalate, with a name", role("{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [r], verbs: [escalate]}"), others},
		{"bind, with the name of a mighty role", role("{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [harmless, mighty], verbs: [bind]}"), others},
		{"bind, with the name of an unknown role", role("{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [unknown], verbs: [bind]}"), others},
		{"bind, with the names of own and harmless roles", role("{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [r, view, loop], verbs: [bind]}"), ""},
		{"a second rule", role("{apiGroups: [''], resources: [pods], verbs: [get]}, {nonResourceURLs: ['*'], verbs: ['*']}, {apiGroups: [''], resources: ['*'], verbs: [impersonate]}"), "r grants permission to impersonate users (rule 3)"},
		{"read everything", rule("'*'", "'*'", "get"), "r grants permission to get all objects"},
		{"commands by get", rule("''", "nodes/proxy", "get"), exec},
		{"commands in all Pods", rule("''", "pods/exec", "create"), exec},
		{"Pods", rule("''", "pods", "create"), pods},
		{"Pods of others", rule("apps", "deployments", "patch"), pods},
		{"Pods, later", rule("batch", "cronjobs", "'*'"), pods},
		{"a container in Pods of others", rule("''", "pods/ephemeralcontainers", "update"), pods},
		{"Nodes", rule("''", "persistentvolumes", "create"), "r grants permission to mount file systems of Nodes"},
		{"webhooks", rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "update"), "r grants permission to change all objects while they are written"},
		{"a webhook of others", role("{apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], resourceNames: [other], verbs: [patch]}"), "r grants permission to change all objects"},
		{"its own webhook", webhook("MutatingWebhookConfiguration", "x.io") + "---\n" + role("{apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], resourceNames: [w], verbs: [patch]}"), ""},
		{"APIs", rule("apiregistration.k8s.io", "apiservices", "patch"), "r grants permission to replace APIs"},
		{"providers", rule("operator.cluster.x-k8s.io", "coreproviders", "create"), "r grants permission to declare providers"},
		{"its own kinds, in all API groups", rule("'*'", "foos", "'*'"), ""},
		{"what providers have: metal3, vsphere", role("{apiGroups: [''], resources: [configmaps, events, nodes, secrets, serviceaccounts], verbs: [create, delete, get, list, patch, update, watch]}, " +
			"{apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings, roles], verbs: [create, delete, get, list, patch, update, watch]}, {apiGroups: [''], resources: [pods], verbs: [list]}"), ""},
		{"what providers have: hetzner", role("{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests/approval], verbs: [update]}, " +
			"{apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [kubernetes.io/kubelet-serving], verbs: [approve]}, {nonResourceURLs: [/metrics], verbs: [get]}"), ""},
		{"what providers have: openstack", rule("apiextensions.k8s.io", "customresourcedefinitions, customresourcedefinitions/status", "get, list, patch, update, watch"), ""},
		{"a signer of Kubernetes", role("{apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [kubernetes.io/kube-apiserver-client], verbs: [approve]}"), certificates},
		{"all signers of Kubernetes", role("{apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: ['kubernetes.io/*'], verbs: [approve]}"), certificates},
		{"certificates of kubelets", role("{apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [kubernetes.io/kubelet-serving], verbs: [approve]}"), ""},
		{"a webhook over Pods", webhook("MutatingWebhookConfiguration", "x.io, ''"), `API group ""`},
		{"a policy over roles", "apiVersion: admissionregistration.k8s.io/v1beta1\nkind: MutatingAdmissionPolicy\nmetadata: {name: p}\nspec: {matchConstraints: {resourceRules: [{apiGroups: [rbac.authorization.k8s.io]}]}}", "p would change objects of others"},
		{"a validating webhook", webhook("ValidatingWebhookConfiguration", "'*'"), ""},
		{"a local volume", "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv}\nspec: {local: {path: /}}\n", "pv is a file system of a Node"},
		{"the garbage collector", bind("system:controller:generic-garbage-collector"), "all objects (its rule 1)"},
		{"a role that may escalate", bind("system:controller:clusterrole-aggregation-controller"), "and so permission to write roles"},
		{"a harmless role of Kubernetes", bind("system:auth-delegator"), ""},
		{"a role that grants itself", bind("loop"), ""},
		{"a role that does not exist yet", bind("later"), "b grants ClusterRole later, which neither the components nor the management cluster have"},
		{"a role of the components", role("") + "---\n" + bind("r"), ""},
		{"a mighty role of the components", named("mighty", "") + "---\n" + bind("mighty"), ""}, // It is replaced.
		{"in its own namespace", strings.Replace(strings.Replace(bind("cluster-admin"), "ClusterRoleBinding", "RoleBinding", 1), "{name: b}", "{name: b, namespace: place}", 1), ""},
		{"permissions of roles of others", aggregates("{matchLabels: {c: d}}"), "r grants the permissions of ClusterRole mighty, and so all permissions (its rule 1)"},
		{"permissions of roles without a label", aggregates("{matchExpressions: [{key: x, operator: DoesNotExist}]}"), "r grants the permissions of ClusterRole admin"},
		{"permissions for the core provider", aggregates("{matchLabels: {cluster.x-k8s.io/aggregate-to-manager: 'true'}}"), "r grants the permissions of ClusterRole mighty"},
		{"permissions of harmless roles", aggregates("{matchLabels: {a: b}}"), ""},
		{"an invalid aggregation", aggregates("{matchExpressions: [{key: x, operator: Is}]}"), "r is invalid: "},
		{"permissions for users, for its own objects", labeled("rbac.authorization.k8s.io/aggregate-to-edit", "x.io, infrastructure.cluster.x-k8s.io"), ""},
		{"permissions for administrators of namespaces", labeled("rbac.authorization.k8s.io/aggregate-to-admin", "x.io, apps"), "ClusterRole admin"},
		{"all ServiceAccounts", role("") + "---\n" + strings.Replace(bind("r"), "{kind: ServiceAccount, name: s, namespace: place}", "{kind: Group, name: 'system:serviceaccounts'}", 1), "b grants permissions to Group system:serviceaccounts"},
		{"another provider's ServiceAccount", pod("taken"), "place/d uses ServiceAccount taken of provider cluster-api"},
		{"the token of another provider's ServiceAccount", "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata: {name: s, namespace: place, annotations: {kubernetes.io/service-account.name: taken}}\n", "place/s uses ServiceAccount taken of provider cluster-api"},
		{"its own ServiceAccount", pod("own"), ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			objects, err := manifest.Parse([]byte(tc.manifest))
			if err != nil {
				t.Fatal(err)
			}
			err = Check(objects, world())
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if refused := (*RefusedError)(nil); err != nil && !errors.As(err, &refused) {
				t.Errorf("%T", err)
			}
		})
	}
}

func TestCoreAggregatesAll(t *testing.T) {
	const core = rbacVersion + "kind: ClusterRole\nmetadata: {name: r}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {cluster.x-k8s.io/aggregate-to-manager: 'true'}}]}\nrules: []\n"
	objects, err := manifest.Parse([]byte(core))
	if err != nil {
		t.Fatal(err)
	}
	o := world()
	o.Label = "cluster-api"
	if err := Check(objects, o); err != nil {
		t.Error(err)
	}
}

// TestRealProviders: releases of real providers are accepted as they are. They are read in place, where there are any.
func TestRealProviders(t *testing.T) {
	facts := cmp.Or(os.Getenv("CAPI_FACTS_DIR"), filepath.Join("..", "..", "..", "..", "..", "shared", "facts"))
	files, err := filepath.Glob(filepath.Join(facts, "data", "providers", "*", "components.yaml"))
	if err != nil || len(files) == 0 {
		t.Skipf("there are no published releases: set CAPI_FACTS_DIR to the directory with data/providers (%v)", err)
	}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(filepath.Dir(file)), "-")
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Clean(file))
			if err != nil {
				t.Fatal(err)
			}
			p := packages.Provider{Name: name, Type: clusterctlv1.InfrastructureProviderType}
			list, err := components.New(p, raw, components.Options{TargetNamespace: "place", Variables: func(string) (string, bool) { return "x", true }})
			if err != nil {
				t.Fatal(err)
			}
			o := world()
			o.Label = p.ManifestLabel()
			if err := Check(list.Objects, o); err != nil {
				t.Error(err)
			}
		})
	}
}
