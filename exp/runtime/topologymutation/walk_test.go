package topologymutation_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/topologymutation"
)

const (
	controlPlane = `{"apiVersion":"controlplane.cluster.x-k8s.io/v1beta1","kind":"KubeadmControlPlaneTemplate","metadata":{"name":"t"},` +
		`"spec":{"template":{"spec":{"rolloutStrategy":{"type":"RollingUpdate"},"later":{"kept":true},"kubeadmConfigSpec":{"files":[{"path":"/a"}]}}}}}`
	bare    = `{"apiVersion":"controlplane.cluster.x-k8s.io/v1beta1","kind":"KubeadmControlPlaneTemplate","spec":{"template":{"spec":{}}}}`
	unknown = `{"apiVersion":"example.org/v1","kind":"OtherTemplate","spec":{}}`
)

func TestWalkTemplates(t *testing.T) {
	setImage := func(_ context.Context, template runtime.Object, variables map[string]apiextensionsv1.JSON, holder runtimehooksv1.HolderReference) error {
		repository, err := topologymutation.GetStringVariable(variables, "repository")
		if err != nil {
			return err
		}
		c := template.(*controlplanev1.KubeadmControlPlaneTemplate)
		c.Spec.Template.Spec.KubeadmConfigSpec.Format = bootstrapv1.Format(repository + holder.FieldPath)
		return nil
	}
	change := func(f func(*controlplanev1.KubeadmControlPlaneTemplateResourceSpec)) topologymutation.MutateFunc {
		return func(_ context.Context, template runtime.Object, _ map[string]apiextensionsv1.JSON, _ runtimehooksv1.HolderReference) error {
			f(&template.(*controlplanev1.KubeadmControlPlaneTemplate).Spec.Template.Spec)
			return nil
		}
	}
	nothing := change(func(*controlplanev1.KubeadmControlPlaneTemplateResourceSpec) {})
	merge := topologymutation.PatchFormat{Format: runtimehooksv1.JSONMergePatchType}
	for reason, test := range map[string]struct {
		template string
		mutate   topologymutation.MutateFunc
		options  []topologymutation.WalkTemplatesOption
		// spec is the patched template's, patch the patch; both may be empty.
		patch, spec, failure string
	}{
		"a variable of the template overrides that of the request; other fields are left alone": {
			template: controlPlane, mutate: setImage,
			spec: `{"template":{"spec":{"rolloutStrategy":{"type":"RollingUpdate"},"later":{"kept":true},"kubeadmConfigSpec":{"files":[{"path":"/a"}],` +
				`"format":"item.spec"}}}}`,
		},
		"parents that the template does not have are added": {
			template: bare, mutate: setImage,
			spec: `{"template":{"spec":{"kubeadmConfigSpec":{"format":"item.spec"}}}}`,
		},
		"the same as a merge patch": {
			template: bare, mutate: setImage, options: []topologymutation.WalkTemplatesOption{merge},
			spec: `{"template":{"spec":{"kubeadmConfigSpec":{"format":"item.spec"}}}}`,
		},
		"removals and replacements, in the order of their paths": {
			template: controlPlane,
			mutate: change(func(s *controlplanev1.KubeadmControlPlaneTemplateResourceSpec) {
				s.RolloutStrategy = nil
				s.KubeadmConfigSpec.Files = []bootstrapv1.File{{Path: "/b"}}
			}),
			patch: `[{"op":"replace","path":"/spec/template/spec/kubeadmConfigSpec/files","value":[{"path":"/b"}]},{"op":"remove","path":"/spec/template/spec/rolloutStrategy"}]`,
		},
		"a template that does not change has no patch":                   {template: controlPlane, mutate: nothing},
		"a type that the decoder does not know is left alone":            {template: unknown, mutate: nothing},
		"a type that the decoder does not know is a failure, if desired": {template: unknown, mutate: nothing, options: []topologymutation.WalkTemplatesOption{topologymutation.FailForUnknownTypes{}}, failure: "cannot decode the template for spec of Cluster c"},
		"a template that is no object is a failure":                      {template: `[]`, mutate: nothing, failure: "cannot decode the template"},
		"an error of the function is a failure": {
			template: controlPlane, failure: "no credentials",
			mutate: func(context.Context, runtime.Object, map[string]apiextensionsv1.JSON, runtimehooksv1.HolderReference) error {
				return errors.New("no credentials")
			},
		},
		"an unknown format is a failure": {template: bare, mutate: setImage, options: []topologymutation.WalkTemplatesOption{topologymutation.PatchFormat{Format: "Text"}}, failure: `the format is "Text"`},
	} {
		request := &runtimehooksv1.GeneratePatchesRequest{
			Variables: []runtimehooksv1.Variable{variable("repository", `"global"`)},
			Items: []runtimehooksv1.GeneratePatchesRequestItem{{
				UID: "1", Object: runtime.RawExtension{Raw: []byte(test.template)},
				HolderReference: runtimehooksv1.HolderReference{Kind: "Cluster", Name: "c", FieldPath: "spec"},
				Variables:       []runtimehooksv1.Variable{variable("repository", `"item."`)},
			}},
		}
		var response runtimehooksv1.GeneratePatchesResponse
		topologymutation.WalkTemplates(t.Context(), decoder(t), request, &response, test.mutate, test.options...)
		if test.failure != "" {
			if response.Status != runtimehooksv1.ResponseStatusFailure || !strings.Contains(response.Message, test.failure) || response.Items != nil {
				t.Errorf("%s: want a failure with %q and no patches, but have %v", reason, test.failure, response)
			}
			continue
		}
		if response.Status != runtimehooksv1.ResponseStatusSuccess || response.Items == nil {
			t.Errorf("%s: want a success with a list of patches, but have %v", reason, response)
		}
		if test.patch == "" && test.spec == "" {
			if len(response.Items) != 0 {
				t.Errorf("%s: want no patch, but have %s", reason, response.Items[0].Patch)
			}
			continue
		}
		if len(response.Items) != 1 || response.Items[0].UID != types.UID("1") {
			t.Fatalf("%s: want a patch of item 1, but have %v", reason, response)
		}
		if test.patch != "" && string(response.Items[0].Patch) != test.patch {
			t.Errorf("%s:\n%s", reason, cmp.Diff(test.patch, string(response.Items[0].Patch)))
		}
		if test.spec != "" {
			if diff := cmp.Diff(decode(t, test.spec), decode(t, string(apply(t, test.template, response.Items[0])))["spec"]); diff != "" {
				t.Errorf("%s:\n%s", reason, diff)
			}
		}
	}
}

// Integers above 2^53 are neither rounded nor mistaken for each other.
func TestLargeNumbersInTemplates(t *testing.T) {
	const template = `{"apiVersion":"x.example.com/v1","kind":"Disk","spec":{"bytes":9007199254740992,"kept":9007199254740995}}`
	set := func(_ context.Context, template runtime.Object, _ map[string]apiextensionsv1.JSON, _ runtimehooksv1.HolderReference) error {
		spec := template.(*unstructured.Unstructured).Object["spec"].(map[string]any)
		spec["bytes"], spec["sizes"] = int64(9007199254740993), []any{int64(9223372036854775807), 1.5}
		return nil
	}
	for format, want := range map[runtimehooksv1.PatchType]string{
		runtimehooksv1.JSONMergePatchType: `{"spec":{"bytes":9007199254740993,"sizes":[9223372036854775807,1.5]}}`,
		runtimehooksv1.JSONPatchType: `[{"op":"replace","path":"/spec/bytes","value":9007199254740993},` +
			`{"op":"add","path":"/spec/sizes","value":[9223372036854775807,1.5]}]`,
	} {
		request := &runtimehooksv1.GeneratePatchesRequest{Items: []runtimehooksv1.GeneratePatchesRequestItem{
			{UID: "1", Object: runtime.RawExtension{Raw: []byte(template)}},
		}}
		var response runtimehooksv1.GeneratePatchesResponse
		topologymutation.WalkTemplates(t.Context(), unstructured.UnstructuredJSONScheme, request, &response, set, topologymutation.PatchFormat{Format: format})
		if len(response.Items) != 1 || string(response.Items[0].Patch) != want {
			t.Errorf("%s: want %s, but have %v", format, want, response)
		}
	}
}

func TestVariables(t *testing.T) {
	merged, err := topologymutation.MergeVariableMaps(
		topologymutation.ToMap([]runtimehooksv1.Variable{variable("builtin", `{"cluster":{"name":"c"},"controlPlane":{"replicas":3}}`), variable("proxy", `{"url":"u","port":9007199254740993}`)}),
		topologymutation.ToMap([]runtimehooksv1.Variable{variable("builtin", `{"controlPlane":{"version":"v1.36.3"}}`), variable("servers", `["a","b"]`), variable("on", `true`)}),
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"builtin":              `{"cluster":{"name":"c"},"controlPlane":{"replicas":3,"version":"v1.36.3"}}`,
		"builtin.cluster.name": `"c"`, "proxy.url": `"u"`, "proxy.port": `9007199254740993`, "servers[1]": `"b"`, "on": `true`,
	} {
		if got, err := topologymutation.GetVariable(merged, name); err != nil || string(got.Raw) != want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
	for _, name := range []string{"other", "proxy.user", "servers[2]"} {
		if _, err := topologymutation.GetVariable(merged, name); !topologymutation.IsNotFoundError(err) {
			t.Errorf("%s: want a not found error, but have %v", name, err)
		}
	}
	if _, err := topologymutation.GetVariable(merged, "a["); err == nil || topologymutation.IsNotFoundError(err) {
		t.Errorf("an invalid reference: %v", err)
	}
	if on, err := topologymutation.GetBoolVariable(merged, "on"); err != nil || !on {
		t.Errorf("on: %v, %v", on, err)
	}
	if _, err := topologymutation.GetStringVariable(merged, "on"); err == nil || topologymutation.IsNotFoundError(err) {
		t.Errorf("a boolean is no string: %v", err)
	}
	var proxy struct {
		URL string `json:"url"`
	}
	if err := topologymutation.GetObjectVariableInto(merged, "proxy", &proxy); err != nil || proxy.URL != "u" {
		t.Errorf("proxy: %v, %v", proxy, err)
	}
	if _, err := topologymutation.MergeVariableMaps(map[string]apiextensionsv1.JSON{"builtin": {Raw: []byte(`1`)}}); err == nil {
		t.Error("builtin that is no object: want an error")
	}
}

func variable(name, value string) runtimehooksv1.Variable {
	return runtimehooksv1.Variable{Name: name, Value: apiextensionsv1.JSON{Raw: []byte(value)}}
}

func decoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := controlplanev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return serializer.NewCodecFactory(scheme).UniversalDecoder(controlplanev1.GroupVersion)
}

func apply(t *testing.T, document string, item runtimehooksv1.GeneratePatchesResponseItem) []byte {
	t.Helper()
	if item.PatchType == runtimehooksv1.JSONMergePatchType {
		out, err := jsonpatch.MergePatch([]byte(document), item.Patch)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	patch, err := jsonpatch.DecodePatch(item.Patch)
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply([]byte(document))
	if err != nil {
		t.Fatalf("%v: %s", err, item.Patch)
	}
	return out
}

func decode(t *testing.T, document string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(document), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
