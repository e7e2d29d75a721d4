package merge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/packages/manifest"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse([]byte(text))
	if err != nil || len(objects) != 1 {
		t.Fatalf("want one object, got %d, %v", len(objects), err)
	}
	return &objects[0]
}

// of returns an object of a kind with a name and fields.
func of(kind, metadata, fields string) string {
	apiVersion := map[string]string{
		"Deployment": "apps/v1", "ClusterRole": "rbac.authorization.k8s.io/v1", "RoleBinding": "rbac.authorization.k8s.io/v1",
		"ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1", "Certificate": "cert-manager.io/v1", "NetworkPolicy": "networking.k8s.io/v1",
	}[kind]
	if apiVersion == "" {
		apiVersion = "v1"
	}
	return strings.TrimSuffix("{apiVersion: "+apiVersion+", kind: "+kind+", metadata: {name: x"+metadata+"}, "+fields, ", ") + "}"
}

func TestFinal(t *testing.T) {
	tests := []struct {
		reason              string
		live, desired, want string
	}{
		{
			reason:  "Users' labels, annotations and finalizers stay; fields that the new version does not have go.",
			live:    of("ConfigMap", ", resourceVersion: '7', uid: u, labels: {mine: x, v: old}, finalizers: [f]", "data: {a: '1', b: '2'}"),
			desired: of("ConfigMap", ", labels: {v: new}", "data: {a: '3'}"),
			want:    of("ConfigMap", ", resourceVersion: '7', uid: u, labels: {mine: x, v: new}, finalizers: [f]", "data: {a: '3'}"),
		},
		{
			reason:  "A Namespace keeps the label of another provider in it: otherwise both would change it forever.",
			live:    of("Namespace", ", labels: {cluster.x-k8s.io/provider: other, v: old}", ""),
			desired: of("Namespace", ", labels: {cluster.x-k8s.io/provider: own, v: new}", ""),
			want:    of("Namespace", ", labels: {cluster.x-k8s.io/provider: other, v: new}", ""),
		},
		{
			reason:  "A Namespace without such a label gets it.",
			live:    of("Namespace", "", ""),
			desired: of("Namespace", ", labels: {cluster.x-k8s.io/provider: own}", ""),
			want:    of("Namespace", ", labels: {cluster.x-k8s.io/provider: own}", ""),
		},
		{
			reason:  "Addresses of a Service stay.",
			live:    of("Service", "", "spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 443, protocol: TCP, nodePort: 30001}], selector: {a: old}}"),
			desired: of("Service", "", "spec: {ports: [{port: 443, targetPort: 9443}], selector: {a: new}}"),
			want:    of("Service", "", "spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 443, targetPort: 9443, nodePort: 30001}], selector: {a: new}}"),
		},
		{
			reason:  "A recorded Service that was created again has other addresses, which cannot change.",
			live:    of("Service", "", "spec: {clusterIP: 10.0.0.9, clusterIPs: [10.0.0.9]}"),
			desired: of("Service", "", "spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}"),
			want:    of("Service", "", "spec: {clusterIP: 10.0.0.9, clusterIPs: [10.0.0.9]}"),
		},
		{
			reason:  "Whether a Service is headless is not an address: the API server says that it cannot change.",
			live:    of("Service", "", "spec: {clusterIP: 10.0.0.9, clusterIPs: [10.0.0.9]}"),
			desired: of("Service", "", "spec: {clusterIP: None}"),
			want:    of("Service", "", "spec: {clusterIP: None, clusterIPs: [10.0.0.9]}"),
		},
		{
			reason:  "The rules of an aggregated role are a controller's.",
			live:    of("ClusterRole", "", "rules: [{verbs: [get]}], aggregationRule: {}"),
			desired: of("ClusterRole", "", "rules: [], aggregationRule: {clusterRoleSelectors: [{}]}"),
			want:    of("ClusterRole", "", "rules: [{verbs: [get]}], aggregationRule: {clusterRoleSelectors: [{}]}"),
		},
		{
			reason:  "CA bundles stay, also for new webhooks of the same Service; cert-manager injects no more.",
			live:    of("ValidatingWebhookConfiguration", ", annotations: {cert-manager.io/inject-ca-from: ns/c, mine: x}", "webhooks: [{name: a, clientConfig: {caBundle: TElWRQ==, service: {name: s, namespace: ns}}}]"),
			desired: of("ValidatingWebhookConfiguration", "", "webhooks: [{name: b, clientConfig: {caBundle: Cg==, service: {name: s, namespace: ns}}}, {name: c, clientConfig: {service: {name: other, namespace: ns}}}]"),
			want: of("ValidatingWebhookConfiguration", ", annotations: {mine: x}",
				"webhooks: [{name: b, clientConfig: {caBundle: TElWRQ==, service: {name: s, namespace: ns}}}, {name: c, clientConfig: {service: {name: other, namespace: ns}}}]"),
		},
		{
			reason: "Text of Secrets is encoded.", live: of("Secret", "", "type: Opaque, data: {a: b2xk}"),
			desired: of("Secret", "", "stringData: {a: new}"), want: of("Secret", "", "type: Opaque, data: {a: bmV3}"),
		},
		{
			reason: "An autoscaler owns the replicas that a manifest does not set.", live: of("Deployment", "", "spec: {replicas: 3, paused: true}"),
			desired: of("Deployment", "", "spec: {minReadySeconds: 1}"), want: of("Deployment", "", "spec: {replicas: 3, minReadySeconds: 1}"),
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			live := parse(t, tc.live)
			before := live.DeepCopy()
			if diff := cmp.Diff(parse(t, tc.want).Object, Final(live, parse(t, tc.desired)).Object); diff != "" {
				t.Errorf("Final(): -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, live); diff != "" {
				t.Errorf("Final() changed live:\n%s", diff)
			}
		})
	}
}

func TestExtended(t *testing.T) {
	tests := []struct {
		reason              string
		live, desired, want string
	}{
		{
			reason: "Both versions have their permissions.", live: of("ClusterRole", "", "rules: [{verbs: [get]}, {verbs: [list]}]"),
			desired: of("ClusterRole", "", "rules: [{verbs: [get]}, {verbs: [watch]}]"), want: of("ClusterRole", "", "rules: [{verbs: [get]}, {verbs: [list]}, {verbs: [watch]}]"),
		},
		{
			reason: "Both ServiceAccounts are bound.", live: of("RoleBinding", "", "subjects: [{name: a}]"),
			desired: of("RoleBinding", "", "subjects: [{name: b}]"), want: of("RoleBinding", "", "subjects: [{name: a}, {name: b}]"),
		},
		{
			reason: "Keys that the old version reads stay.", live: of("ConfigMap", "", "data: {a: '1', b: '2'}"),
			desired: of("ConfigMap", "", "data: {b: '3', c: '4'}"), want: of("ConfigMap", "", "data: {a: '1', b: '3', c: '4'}"),
		},
		{
			reason: "A Service keeps its selector, and gets ports that conflict with none.", live: of("Service", "", "spec: {selector: {a: old}, ports: [{port: 443, targetPort: 1, protocol: TCP}]}"),
			desired: of("Service", "", "spec: {selector: {a: new}, ports: [{port: 443, targetPort: 2, name: x}, {port: 8443, name: y}]}"),
			want:    of("Service", "", "spec: {selector: {a: old}, ports: [{port: 443, targetPort: 1, protocol: TCP}, {port: 8443, name: y}]}"),
		},
		{
			reason: "New Pods may mount the Secret of a Certificate.", live: of("Certificate", "", "spec: {secretName: old}"),
			desired: of("Certificate", "", "spec: {secretName: new}"), want: of("Certificate", "", "spec: {secretName: new}"),
		},
		{reason: "Everything else has to wait.", live: of("NetworkPolicy", "", "spec: {a: old}"), desired: of("NetworkPolicy", "", "spec: {a: new}")},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			var want map[string]any
			if tc.want != "" {
				want = parse(t, tc.want).Object
			}
			var got map[string]any
			if out := Extended(parse(t, tc.live), parse(t, tc.desired)); out != nil {
				got = out.Object
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Extended(): -want +got:\n%s", diff)
			}
		})
	}
}

func TestRolling(t *testing.T) {
	for reason, tc := range map[string][2]string{
		"Old Pods run until new ones are available.":                 {"spec: {}", "spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}}"},
		"Pods that must not run at the same time are stopped first.": {"spec: {strategy: {type: Recreate}}", "spec: {strategy: {type: Recreate}}"},
	} {
		t.Run(reason, func(t *testing.T) {
			live := parse(t, of("Deployment", "", "spec: {}"))
			if diff := cmp.Diff(parse(t, of("Deployment", "", tc[1])).Object, Rolling(live, parse(t, of("Deployment", "", tc[0]))).Object); diff != "" {
				t.Errorf("Rolling(): -want +got:\n%s", diff)
			}
		})
	}
}

func TestMustRecreate(t *testing.T) {
	tests := []struct {
		reason        string
		live, desired string
		want          bool
	}{
		{"A selector cannot be changed.", of("Deployment", "", "spec: {selector: {a: x}}"), of("Deployment", "", "spec: {selector: {a: y}}"), true},
		{"A template can.", of("Deployment", "", "spec: {selector: {a: x}, template: {a: x}}"), of("Deployment", "", "spec: {selector: {a: x}, template: {a: y}}"), false},
		{"A binding stays with its role.", of("RoleBinding", "", "roleRef: {name: x}"), of("RoleBinding", "", "roleRef: {name: y}"), true},
		{"Immutable data cannot be changed.", of("ConfigMap", "", "immutable: true, data: {a: x}"), of("ConfigMap", "", "data: {a: y}"), true},
		{"Immutable data that stays needs nothing.", of("Secret", "", "immutable: true, data: {a: eA==}"), of("Secret", "", "stringData: {a: x}"), false},
		{"The type of a Secret cannot be changed.", of("Secret", "", "type: a"), of("Secret", "", "type: b"), true},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if got := MustRecreate(parse(t, tc.live), parse(t, tc.desired)); got != tc.want {
				t.Errorf("MustRecreate(): want %t", tc.want)
			}
		})
	}
}

func TestBundlesAdd(t *testing.T) {
	webhook := func(bundle string) *unstructured.Unstructured {
		return parse(t, of("ValidatingWebhookConfiguration", "", "webhooks: [{name: a, clientConfig: {caBundle: '"+bundle+"', service: {name: s, namespace: ns}}}]"))
	}
	for reason, tc := range map[string][3]string{
		"Both CAs are trusted.":            {"T05F", "VFdP", "T05FClRXTw=="},
		"A CA is not repeated.":            {"T05F", "T05FClRXTw==", "T05FClRXTw=="},
		"A placeholder is replaced.":       {"Cg==", "VFdP", "VFdP"},
		"What is unchanged remains as is.": {"T05F", "", "T05F"},
	} {
		t.Run(reason, func(t *testing.T) {
			o := webhook(tc[0])
			BundlesOf(*webhook(tc[1])).Add(o)
			if diff := cmp.Diff(webhook(tc[2]).Object, o.Object); diff != "" {
				t.Errorf("Add(): -want +got:\n%s", diff)
			}
		})
	}
}

func TestScaled(t *testing.T) {
	managed := func(manager, subresource string) string {
		return ", managedFields: [{manager: " + manager + ", operation: Update, subresource: '" + subresource + "', fieldsV1: {'f:spec': {'f:replicas': {}}}}, " +
			"{manager: kubectl, operation: Update, fieldsV1: {'f:metadata': {}}}]"
	}
	tests := []struct {
		reason        string
		live, desired string
		want          int64
		kept          bool
	}{
		{"A user has scaled it.", of("Deployment", managed("kubectl", "scale"), "spec: {replicas: 3}"), of("Deployment", "", "spec: {replicas: 1}"), 3, true},
		{"The manifest sets no replicas, which are 1 then.", of("Deployment", managed("kubectl", "scale"), "spec: {replicas: 3}"), of("Deployment", "", "spec: {}"), 3, true},
		{"The old manifest has more than the new one.", of("Deployment", managed("clusterctl", ""), "spec: {replicas: 3}"), of("Deployment", "", "spec: {replicas: 1}"), 1, false},
		{"The same, installed by the operator.", of("Deployment", managed("cluster-api-operator", ""), "spec: {replicas: 3}"), of("Deployment", "", "spec: {replicas: 1}"), 1, false},
		{"The new manifest has more than the user.", of("Deployment", managed("kubectl", "scale"), "spec: {replicas: 2}"), of("Deployment", "", "spec: {replicas: 3}"), 3, false},
		{"What a user has stopped is started, as its webhooks are needed.", of("Deployment", managed("kubectl", "scale"), "spec: {replicas: 0}"), of("Deployment", "", "spec: {replicas: 1}"), 1, false},
		{"An earlier upgrade kept it, and created it again.", of("Deployment", ", annotations: {"+ScaledAnnotation+": '3'}", "spec: {replicas: 3}"), of("Deployment", "", "spec: {replicas: 1}"), 3, true},
		{"A later manifest has set it since.", of("Deployment", ", annotations: {"+ScaledAnnotation+": '3'}", "spec: {replicas: 2}"), of("Deployment", "", "spec: {replicas: 1}"), 1, false},
		{"Nobody knows who set it.", of("Deployment", "", "spec: {replicas: 3}"), of("Deployment", "", "spec: {replicas: 1}"), 1, false},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			desired := parse(t, tc.desired)
			before := desired.DeepCopy()
			out := Scaled(parse(t, tc.live), desired)
			if _, kept := out.GetAnnotations()[ScaledAnnotation]; replicas(out) != tc.want || kept != tc.kept {
				t.Errorf("got %d replicas (kept: %t), want %d (kept: %t)", replicas(out), kept, tc.want, tc.kept)
			}
			if diff := cmp.Diff(before, desired); diff != "" {
				t.Errorf("the desired object is changed: %s", diff)
			}
		})
	}
	if out := Recorded(parse(t, of("Deployment", "", "spec: {replicas: 3}")), parse(t, of("Deployment", "", "spec: {replicas: 1}"))); replicas(out) != 3 {
		t.Errorf("what was deleted to be created again has %d replicas", replicas(out))
	}
}
