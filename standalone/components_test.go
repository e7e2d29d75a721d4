package standalone

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kubeadmbootstrap "sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm"
	kubeadmcontrolplane "sigs.k8s.io/cluster-api/providers/control-plane-kubeadm"
	"sigs.k8s.io/cluster-api/providers/core"
	"sigs.k8s.io/cluster-api/providers/fleet"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/standalone/internal/host"
	"sigs.k8s.io/cluster-api/standalone/internal/testcluster"
)

// doorkeeper is a component like this project's: it runs in a manager that issues its own webhook certificate.
func doorkeeper() manager.Component {
	return manager.Component{
		Name: "doorkeeper", Namespace: "doors", LeaderElectionID: "doorkeeper", WebhookService: "doorkeeper-webhook",
		Setup: func(_ context.Context, mgr ctrl.Manager, _ manager.Environment) error {
			mgr.GetWebhookServer().Register("/validate", &webhook.Admission{Handler: admission.HandlerFunc(
				func(context.Context, admission.Request) admission.Response {
					return admission.Denied("the door is closed")
				},
			)})
			return nil
		},
	}
}

// manifest is what a provider's release would contain.
const manifest = `
apiVersion: v1
kind: Namespace
metadata: {name: doors}
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: doors, name: manager}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: doors, name: manager}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [create, get, list, watch, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: doors, name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: manager}
subjects: [{kind: ServiceAccount, namespace: doors, name: manager}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: doorkeeper}
rules:
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations, mutatingwebhookconfigurations]
  verbs: [list, watch, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: doorkeeper}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: doorkeeper}
subjects: [{kind: ServiceAccount, namespace: doors, name: manager}]
---
apiVersion: v1
kind: Service
metadata: {namespace: doors, name: doorkeeper-webhook}
spec:
  selector: {app: doorkeeper}
  ports: [{port: 443, targetPort: webhook-server}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: doorkeeper}
webhooks:
- name: door.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  objectSelector: {matchLabels: {door: "true"}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  clientConfig: {service: {namespace: doors, name: doorkeeper-webhook, path: /validate}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: doors, name: doorkeeper}
spec:
  selector: {matchLabels: {app: doorkeeper}}
  template:
    metadata: {labels: {app: doorkeeper}}
    spec:
      serviceAccountName: manager
      containers:
      - name: manager
        image: registry.example/doorkeeper:v1
        args: [--leader-elect]
        ports: [{name: webhook-server, containerPort: 9443}, {name: healthz, containerPort: 9440}]
        readinessProbe: {httpGet: {path: /readyz, port: healthz}}
`

// cluster runs a control plane that hosts the doorkeeper, until the test ends.
func cluster(t *testing.T) client.WithWatch {
	t.Helper()
	started, err := testcluster.Start(t.TempDir(), hosted(doorkeeper))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(started.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAProjectsComponentIsHosted(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		object, err := decode(c.Scheme(), document)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	watcher, err := c.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace("doors"))
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	var last *appsv1.Deployment
	for event := range watcher.ResultChan() {
		if last, _ = event.Object.(*appsv1.Deployment); last != nil && last.Status.AvailableReplicas == 1 {
			break
		}
	}
	if ctx.Err() != nil {
		t.Fatalf("the component is not available: %+v", last.Status)
	}
	// Available means that the API server trusts the webhook; it observes the CA bundle shortly after.
	const want = `admission webhook "door.example.com" denied the request: the door is closed`
	for err = nil; ctx.Err() == nil; {
		door := &corev1.ConfigMap{}
		door.Namespace, door.Name, door.Labels = "doors", "door", map[string]string{"door": "true"}
		if err = c.Create(ctx, door, client.DryRunAll); err != nil && err.Error() == want {
			return
		}
	}
	t.Errorf("want %q, got %v", want, err)
}

func TestComponentsAreAdapted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		component manager.Component
		want      []string
	}{
		{inmemory.NewComponent(), []string{"--data-dir=/data/of/it", "--debug-address="}},
		{kubeadmcontrolplane.NewComponent(), []string{"--key-algorithm=ECDSA-P256"}},
		{kubeadmbootstrap.NewComponent(), []string{"--key-algorithm=ECDSA-P256"}},
		{fleet.NewComponent(), []string{"--data-dir=/data/of/it", "--allow-local-stores=true", "--serve-address=127.0.0.1:0"}},
		{core.NewComponent(), nil},
		{doorkeeper(), nil},
	} {
		if got := adapted(test.component, host.Process{DataDir: "/data/of/it"}); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.component.Name, got, test.want)
		}
	}
}

// decode reads one YAML document into an object of its kind.
func decode(scheme *runtime.Scheme, document string) (client.Object, error) {
	object := &struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}{}
	if err := yaml.Unmarshal([]byte(document), object); err != nil {
		return nil, err
	}
	typed, err := scheme.New(schema.FromAPIVersionAndKind(object.APIVersion, object.Kind))
	if err != nil {
		return nil, err
	}
	return typed.(client.Object), yaml.Unmarshal([]byte(document), typed)
}
