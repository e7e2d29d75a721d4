package replacement

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var (
	build     = object.Builder{Namespace: "n"}
	thing     = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "Thing"}
	templates = schema.GroupVersionKind{Group: thing.Group, Version: thing.Version, Kind: "ThingTemplate"}
)

// machine returns a control plane Machine of version v1.30.0 that refers to Thing m and KubeadmConfig m.
func machine() *clusterv1.Machine {
	return build.Machine("m", object.ControlPlane, func(m *clusterv1.Machine) {
		m.Spec.Version = "v1.30.0"
		m.Spec.InfrastructureRef = *object.Reference(thing, "m")
		m.Spec.Bootstrap.ConfigRef = *object.Reference(bootstrapv1.GroupVersion.WithKind("KubeadmConfig"), "m")
	})
}

// infrastructure returns Thing m, created from a template.
func infrastructure(template string) *unstructured.Unstructured {
	u := build.Provided(thing, "m", nil)
	u.SetAnnotations(map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation: template, clusterv1.TemplateClonedFromGroupKindAnnotation: templates.GroupKind().String(),
	})
	return u
}

// config returns KubeadmConfig m, with a command.
func config(command string) *bootstrapv1.KubeadmConfig {
	return &bootstrapv1.KubeadmConfig{ObjectMeta: build.Meta("KubeadmConfig", "m"), Spec: bootstrapv1.KubeadmConfigSpec{PreKubeadmCommands: []string{command}}}
}

// controlPlane returns a KubeadmControlPlane of version v1.30.0, template t and command "true".
func controlPlane(t *testing.T, change func(*controlplanev1.KubeadmControlPlaneSpec)) *unstructured.Unstructured {
	t.Helper()
	kcp := &controlplanev1.KubeadmControlPlane{ObjectMeta: build.Meta("KubeadmControlPlane", "k")}
	kcp.Spec.Version = "v1.30.0"
	kcp.Spec.KubeadmConfigSpec.PreKubeadmCommands = []string{"true"}
	kcp.Spec.MachineTemplate.Spec.InfrastructureRef = *object.Reference(templates, "t")
	if change != nil {
		change(&kcp.Spec)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(kcp)
	testenv.Must(t, err)
	return &unstructured.Unstructured{Object: content}
}

func newServer(t *testing.T, objects ...client.Object) *fakeapi.Server {
	t.Helper()
	return fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{bootstrapv1.AddToScheme}, Objects: append(objects, object.CRD(thing))})
}

func TestReasons(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		change  func(*controlplanev1.KubeadmControlPlaneSpec)
		objects []client.Object
		want    []string
	}{
		{reason: "a Machine as specified stays", objects: []client.Object{infrastructure("t"), config("true")}},
		{
			reason: "version", objects: []client.Object{infrastructure("t"), config("true")}, want: []string{"version v1.30.0 is not v1.31.0"},
			change: func(s *controlplanev1.KubeadmControlPlaneSpec) { s.Version = "v1.31.0" },
		},
		{
			reason:  "the infrastructure machine is read from the reference",
			objects: []client.Object{infrastructure("previous"), config("true")},
			want:    []string{"its infrastructure is from ThingTemplate.infrastructure.cluster.x-k8s.io previous, not t"},
		},
		{
			reason:  "the KubeadmConfig is read from the reference",
			objects: []client.Object{infrastructure("t"), config("false")},
			want:    []string{"kubeadmConfigSpec changed"},
		},
		{reason: "objects that do not exist are not compared"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			api := newServer(t, tc.objects...)
			got, err := Reasons(t.Context(), api, controlPlane(t, tc.change), machine(), object.Now())
			testenv.Must(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestUnreadable is about objects whose existence is unknown: a Machine is not reported as one that stays.
func TestUnreadable(t *testing.T) {
	for _, kind := range []string{"Thing", "KubeadmConfig"} {
		t.Run(kind, func(t *testing.T) {
			api := newServer(t, infrastructure("t"), config("true"))
			failed := errors.New("unavailable")
			api.Before = func(r fakeapi.Request) error {
				if r.Kind == kind {
					return failed
				}
				return nil
			}
			got, err := Reasons(t.Context(), api.ForController().Client, controlPlane(t, nil), machine(), object.Now())
			if want := "reading " + kind + " n/m: unavailable"; !errors.Is(err, failed) || err.Error() != want {
				t.Errorf("got %q, %v; want the error %q", got, err, want)
			}
		})
	}
}

func TestUndecodable(t *testing.T) {
	u := controlPlane(t, nil)
	testenv.Must(t, unstructured.SetNestedField(u.Object, "three", "spec", "replicas"))
	if _, err := Reasons(t.Context(), newServer(t), u, machine(), object.Now()); err == nil {
		t.Error("want an error for replicas that are a string")
	}
}
