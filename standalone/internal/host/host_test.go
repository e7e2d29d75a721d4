package host_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deployment asks for the test component as a provider's manifest would.
func deployment(namespace string, args ...string) *appsv1.Deployment {
	labels := map[string]string{"control-plane": "controller-manager"}
	secretKey := func(key string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "webhook-cert"}, Key: key,
		}}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "controller-manager"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: "component",
					Containers: []corev1.Container{{
						Name: "manager", Image: "registry.example/staging/test-component:v1.2.3@sha256:" + strings.Repeat("0", 64),
						Command: []string{"/manager"}, Args: args,
						Env: []corev1.EnvVar{
							{Name: "POD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
							{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
							{Name: "LIMIT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}},
							{Name: "GREETING", Value: "hello from $(POD_NAMESPACE) with $(LIMIT) bytes, $$(kept) and $(UNKNOWN)"},
							{Name: "OPTIONAL", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
								LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Key: "k", Optional: ptr.To(true),
							}}},
							{Name: "TLS_CERT", ValueFrom: secretKey("tls.crt")},
							{Name: "TLS_KEY", ValueFrom: secretKey("tls.key")},
						},
						Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: apiresource.MustParse("64Mi")}},
						Ports: []corev1.ContainerPort{
							{Name: "webhook-server", ContainerPort: 9443}, {Name: "healthz", ContainerPort: 9440},
						},
						ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
							Path: "/readyz", Port: intstr.FromString("healthz"),
						}}},
					}},
				},
			},
		},
	}
}

// withCertificate creates the Secret with the component's certificate, and returns the certificate.
func withCertificate(t *testing.T, namespace string) []byte {
	t.Helper()
	certPEM, keyPEM, err := issue(namespace)
	if err != nil {
		t.Fatal(err)
	}
	create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "webhook-cert"},
		Data:       map[string][]byte{"tls.crt": certPEM, "tls.key": keyPEM},
	})
	return certPEM
}

func condition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) appsv1.DeploymentCondition {
	for _, c := range d.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return appsv1.DeploymentCondition{}
}

// available waits until the Deployment's current generation is available.
func available(t *testing.T, namespace string) *appsv1.Deployment {
	t.Helper()
	return until(t, &appsv1.DeploymentList{}, namespace, "an available Deployment", func(d *appsv1.Deployment) bool {
		return d.Status.ObservedGeneration == d.Generation && condition(d, appsv1.DeploymentAvailable).Status == corev1.ConditionTrue
	})
}

// change patches the Deployment of a namespace.
func change(t *testing.T, namespace string, mutate func(*appsv1.Deployment)) {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := shared.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "controller-manager"}, d); err != nil {
		t.Fatal(err)
	}
	before := d.DeepCopy()
	mutate(d)
	if err := shared.client.Patch(t.Context(), d, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func TestComponentRunsAsItsDeploymentSpecifies(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	withCertificate(t, ns)
	create(t, deployment(ns, "--tell=$(GREETING)", "--pod-ip=$(POD_IP)"))
	d := available(t, ns)

	want := appsv1.DeploymentStatus{
		ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable", Message: "Deployment has minimum availability."},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", Message: "The component has started."},
		},
	}
	ignoreTimes := cmpopts.IgnoreFields(appsv1.DeploymentCondition{}, "LastUpdateTime", "LastTransitionTime")
	if diff := cmp.Diff(want, d.Status, ignoreTimes); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	seen := &corev1.ConfigMap{}
	if err := shared.client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "seen"}, seen); err != nil {
		t.Fatal(err)
	}
	greeting := "hello from " + ns + " with 67108864 bytes, $(kept) and $(UNKNOWN)"
	user := "system:serviceaccount:" + ns + ":component"
	wantSeen := map[string]string{
		"args":      "--tell=" + greeting + " --pod-ip=127.0.0.1",
		"namespace": ns,
		"dataDir":   filepath.Join(shared.dataDir, ns, d.Name),
		"podIP":     "127.0.0.1",
		"greeting":  greeting,
		"optional":  "",
		"user":      user,
		"groups":    "system:authenticated system:serviceaccounts system:serviceaccounts:" + ns,
		"secrets":   `secrets is forbidden: User "` + user + `" cannot list resource "secrets" in API group "" in the namespace "` + ns + `"`,
	}
	if diff := cmp.Diff(wantSeen, seen.Data); diff != "" {
		t.Errorf("what the component saw (-want +got):\n%s", diff)
	}
}

func TestWebhookIsReachedThroughItsService(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	caBundle := withCertificate(t, ns)
	create(t, deployment(ns))
	available(t, ns)
	withWebhook(t, ns, caBundle)

	const denied = `admission webhook "deny.example.com" denied the request: test-component does not want unwanted`
	wantMessage(t, ns, "the webhook answers", denied)

	change(t, ns, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(0)) })
	if got := <-shared.endedOf(ns); got != ns {
		t.Fatalf("the component of %s ended", got)
	}
	until(t, &appsv1.DeploymentList{}, ns, "a Deployment without replicas", func(d *appsv1.Deployment) bool {
		return d.Status.ObservedGeneration == 2 && d.Status.Replicas == 0
	})
	wantMessage(t, ns, "nothing is behind the Service", "no Deployment matches the selector of Service "+ns+"/webhook")

	change(t, ns, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(1)) })
	available(t, ns)
	wantMessage(t, ns, "the webhook answers again", denied)
}

// withWebhook creates a Service for the component of the namespace, and a webhook for its ConfigMaps labeled validate=true.
func withWebhook(t *testing.T, ns string, caBundle []byte) {
	t.Helper()
	create(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "webhook"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"control-plane": "controller-manager"},
			Ports:    []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromString("webhook-server")}},
		},
	})
	create(t, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "deny.example.com",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns}},
			ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"validate": "true"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: caBundle,
				Service:  &admissionregistrationv1.ServiceReference{Namespace: ns, Name: "webhook", Path: ptr.To("/deny")},
			},
		}},
	})
}

// wantMessage creates the object that the webhook rejects until the API server's error contains the text. It retries
// because the API server observes new webhook configurations with a delay.
func wantMessage(t *testing.T, ns, reason, text string) {
	t.Helper()
	var err error
	for range 200 {
		unwanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "unwanted", Labels: map[string]string{"validate": "true"}}}
		if err = shared.client.Create(t.Context(), unwanted, client.DryRunAll); err != nil && strings.Contains(err.Error(), text) {
			return
		}
	}
	t.Fatalf("%s: want an error with %q, got: %v", reason, text, err)
}

func TestUnknownImageIsRejected(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	d := deployment(ns)
	d.Spec.Template.Spec.Containers[0].Image = "registry.example/other-controller:v9"
	create(t, d)
	refused := until(t, &appsv1.DeploymentList{}, ns, "a rejected Deployment", func(d *appsv1.Deployment) bool {
		return d.Status.ObservedGeneration == 1
	})
	const message = `capi does not run containers, and image "registry.example/other-controller:v9" is not one of its built-in components ` +
		`(test-component): to use this provider, install it on a cluster with Nodes, and move there with clusterctl move`
	want := appsv1.DeploymentStatus{
		ObservedGeneration: 1, UnavailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable", Message: message},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: message},
			{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message},
		},
	}
	ignoreTimes := cmpopts.IgnoreFields(appsv1.DeploymentCondition{}, "LastUpdateTime", "LastTransitionTime")
	if diff := cmp.Diff(want, refused.Status, ignoreTimes); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	until(t, &eventsv1.EventList{}, ns, "an Event about the image", func(e *eventsv1.Event) bool {
		return e.Reason == "ImageNotHosted" && e.Note == message && e.Regarding.Name == d.Name
	})
}

func TestFailureIsShownAndRepaired(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reason  string
		prepare func(t *testing.T, ns string)
		args    []string
		message func(ns string) string
		repair  func(t *testing.T, ns string)
	}{
		{
			reason:  "the component's own error is the condition's message, and new arguments replace it",
			prepare: func(t *testing.T, ns string) { withCertificate(t, ns) },
			args:    []string{"--fail=the flag --x is wrong"},
			message: func(string) string { return "the flag --x is wrong" },
			repair: func(t *testing.T, ns string) {
				change(t, ns, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = nil })
			},
		},
		{
			reason:  "the message names a missing Secret, and the component starts once it exists",
			prepare: func(*testing.T, string) {},
			message: func(ns string) string {
				return `environment variable TLS_CERT: read Secret ` + ns + `/webhook-cert: secrets "webhook-cert" not found`
			},
			repair: func(t *testing.T, ns string) { withCertificate(t, ns) },
		},
		{
			reason: "the message names a missing ServiceAccount, without which nothing runs",
			prepare: func(t *testing.T, ns string) {
				withCertificate(t, ns)
				account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "component"}}
				if err := shared.client.Delete(t.Context(), account); err != nil {
					t.Fatal(err)
				}
			},
			message: func(ns string) string {
				return `get a token of ServiceAccount ` + ns + `/component: serviceaccounts "component" not found`
			},
			repair: func(t *testing.T, ns string) {
				create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "component"}})
			},
		},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			test.prepare(t, ns)
			create(t, deployment(ns, test.args...))
			until(t, &appsv1.DeploymentList{}, ns, test.message(ns), func(d *appsv1.Deployment) bool {
				c := condition(d, appsv1.DeploymentAvailable)
				return c.Status == corev1.ConditionFalse && c.Message == test.message(ns)
			})
			until(t, &eventsv1.EventList{}, ns, "an Event about the failure", func(e *eventsv1.Event) bool {
				return e.Reason == "ComponentFailed" && e.Note == test.message(ns)
			})
			test.repair(t, ns)
			available(t, ns)
		})
	}
}

func TestDeletedDeploymentStops(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	withCertificate(t, ns)
	d := deployment(ns)
	create(t, d)
	available(t, ns)
	if err := shared.client.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	<-shared.endedOf(ns)
	err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(d), d)
	if !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment should be deleted, got: %v", err)
	}
}
