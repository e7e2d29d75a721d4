package config

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// Files with the format Template are rendered with the version of the control plane, which is read only for them.
func TestTemplates(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta1", Kind: "GenericControlPlane"}
	plane := func(spec map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		o.SetGroupVersionKind(kind)
		o.SetNamespace("default")
		o.SetName("plane")
		return o
	}
	versioned := plane(map[string]any{"version": "v1.34.1"})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, Data: map[string][]byte{
		"template": []byte("for {{ .controlPlane.version }}"), "broken": []byte("{{ .hunter2 }}"),
	}}
	const template = bootstrapv1.FileContentFormatTemplate
	from := func(key string) bootstrapv1.FileSource {
		return bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "s", Key: key}}
	}
	const conditional = "{{ if .controlPlane }}{{ .controlPlane.version }}{{ else }}unknown{{ end }}"
	for name, tc := range map[string]struct {
		reason string
		file   bootstrapv1.File
		// plane is the control plane; nil: the Cluster refers to none.
		plane *unstructured.Unstructured
		lost  bool
		want  string
		err   string
	}{
		"raw": {
			reason: "braces mean nothing, and no control plane is read", file: bootstrapv1.File{Content: "{{ .x }}"}, plane: versioned, want: "{{ .x }}",
		},
		"template": {
			reason: "the version is that of the control plane, not of the Machine", file: bootstrapv1.File{Content: conditional, ContentFormat: template},
			plane: versioned, want: "v1.34.1",
		},
		"from a Secret": {
			reason: "its value is a template, too", file: bootstrapv1.File{ContentFrom: from("template"), ContentFormat: template},
			plane: versioned, want: "for v1.34.1",
		},
		"without control plane": {
			reason: "conditions can test for it", file: bootstrapv1.File{Content: conditional, ContentFormat: template}, want: "unknown",
		},
		"without version": {
			reason: "not every control plane has one", file: bootstrapv1.File{Content: conditional, ContentFormat: template},
			plane: plane(map[string]any{}), want: "unknown",
		},
		"without version, but needed": {
			reason: "an empty version would be written to the machine", file: bootstrapv1.File{Content: "{{ .controlPlane.version }}", ContentFormat: template},
			err: `spec.files[0]: content cannot be executed as a Go template with .controlPlane.version ""`,
		},
		"other data": {
			reason: "there is none", file: bootstrapv1.File{Content: "{{ .cluster }}", ContentFormat: template}, plane: versioned,
			err: `spec.files[0]: content cannot be executed as a Go template with .controlPlane.version "v1.34.1"`,
		},
		"secret that is no template": {
			reason: "the error does not quote it", file: bootstrapv1.File{ContentFrom: from("broken"), ContentFormat: template}, plane: versioned,
			err: `spec.files[0]: the value of key "broken" of Secret s is not a Go template that can be executed with .controlPlane.version "v1.34.1"`,
		},
		"missing control plane": {
			reason: "it is created soon, or a mistake that the condition shows", file: bootstrapv1.File{Content: conditional, ContentFormat: template},
			plane: versioned, lost: true, err: `"plane" not found`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := initialized(newCluster())
			objects := []client.Object{cluster, secret, testCA(t), newMachine("w", false), object.CRD(kind)}
			if tc.plane != nil {
				cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: "plane"}
			}
			if tc.plane != nil && !tc.lost {
				objects = append(objects, tc.plane)
			}
			tc.file.Path = "/etc/f"
			w := newWorld(t, append(objects, newConfig("w", bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{tc.file}}))...)
			_, err := w.reconcile(t, "w")
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s: err = %v, want one that contains %q", tc.reason, err, tc.err)
			}
			if terminal := tc.err != "" && strings.Contains(tc.err, `"v1.34.1"`) && tc.file.Content != ""; errors.Is(err, reconcile.TerminalError(nil)) != terminal {
				t.Errorf("%s: only a change of the config can help: want %t, error %v", tc.reason, terminal, err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the value of a Secret is in the error: %v", err)
			}
			if err == nil {
				if got := w.document(t, "w").file("/etc/f"); got != tc.want {
					t.Errorf("%s: content %q, want %q", tc.reason, got, tc.want)
				}
			}
		})
	}
}
