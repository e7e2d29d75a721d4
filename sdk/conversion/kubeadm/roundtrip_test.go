package kubeadm

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// versions are the types of a kind.
type versions struct{ spoke, hub func() client.Object }

func kinds() map[string]versions {
	return map[string]versions{
		"KubeadmConfig": {
			func() client.Object { return &bootstrapv1beta1.KubeadmConfig{} }, func() client.Object { return &bootstrapv1.KubeadmConfig{} }},
		"KubeadmConfigTemplate": {
			func() client.Object { return &bootstrapv1beta1.KubeadmConfigTemplate{} },
			func() client.Object { return &bootstrapv1.KubeadmConfigTemplate{} }},
		"KubeadmControlPlane": {
			func() client.Object { return &controlplanev1beta1.KubeadmControlPlane{} },
			func() client.Object { return &controlplanev1.KubeadmControlPlane{} }},
		"KubeadmControlPlaneTemplate": {
			func() client.Object { return &controlplanev1beta1.KubeadmControlPlaneTemplate{} },
			func() client.Object { return &controlplanev1.KubeadmControlPlaneTemplate{} }},
	}
}

// random fills objects of any version.
func random(seed int64) *randfill.Filler {
	own := func(serializer.CodecFactory) []any {
		return []any{
			func(q *resource.Quantity, c randfill.Continue) {
				*q = *resource.NewQuantity(c.Int63n(1000), resource.DecimalSI)
			},
			func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(c.Int31n(3)) },
			func(t *bootstrapv1beta1.BootstrapTokenString, c randfill.Continue) { t.ID, t.Secret = token(c) },
			func(t *bootstrapv1.BootstrapTokenString, c randfill.Continue) { t.ID, t.Secret = token(c) },
		}
	}
	scheme := runtime.NewScheme()
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, own), rand.NewSource(seed), serializer.NewCodecFactory(scheme)).
		NumElements(1, 3)
}

// token returns the halves of a random token.
func token(c randfill.Continue) (id, secret string) {
	return fmt.Sprintf("%06d", c.Int63n(1e6)), fmt.Sprintf("%016d", c.Int63n(1e16))
}

// fill returns the JSON of an object with random fields, in a namespace.
func fill(t *testing.T, filler *randfill.Filler, typed client.Object) object {
	t.Helper()
	filler.Fill(typed)
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	tree["metadata"] = object{"name": "a", "namespace": "b", "annotations": object{"c": "d"}}
	delete(tree, "kind")
	delete(tree, "apiVersion")
	return normal(t, tree, typed)
}

// normal returns the JSON of an object as its type writes it, without empty objects.
func normal(t *testing.T, tree object, typed client.Object) object {
	t.Helper()
	raw, err := json.Marshal(tree)
	if err == nil {
		err = json.Unmarshal(raw, typed)
	}
	if err == nil {
		tree, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// content returns what two objects are compared by: the spec and the status without what is empty, which has no meaning but for
// some fields.
func content(tree object, parts ...string) object {
	result := object{}
	for _, part := range parts {
		if value, ok := runtime.DeepCopyJSON(tree)[part].(object); ok {
			result[part] = withoutEmpty(value)
		}
	}
	return withoutEmpty(result)
}

func withoutEmpty(o object) object {
	for name, value := range o {
		switch typed := value.(type) {
		case object:
			if len(withoutEmpty(typed)) == 0 && !slices.Contains(present(), name) {
				delete(o, name)
			}
		case []any:
			for _, item := range typed {
				if nested, ok := item.(object); ok {
					withoutEmpty(nested)
				}
			}
		case nil:
			delete(o, name)
		}
	}
	return o
}

const rounds = 60

// What is written in v1beta2 is the same after clients of v1beta1 read and wrote it.
func TestHubRoundTrip(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			filler, convert := random(1), converters()[name]
			for range rounds {
				hub := fill(t, filler, kind.hub())
				spoke := convert[1](t, hub)
				back := convert[0](t, spoke)
				if diff := cmp.Diff(content(hub, "spec", "status"), content(back, "spec", "status")); diff != "" {
					t.Fatalf("changed (-want +got):\n%s\nspoke: %s", diff, show(spoke))
				}
				if diff := cmp.Diff(hub["metadata"], back["metadata"]); diff != "" {
					t.Errorf("metadata (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// What is written in v1beta1 is what clients of v1beta1 read, although it is stored in v1beta2.
func TestSpokeRoundTrip(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			filler, convert := random(2), converters()[name]
			for range rounds {
				spoke := fill(t, filler, kind.spoke())
				fillNamespace(spoke)
				hub := convert[0](t, spoke)
				back := convert[1](t, hub)
				if diff := cmp.Diff(content(spoke, "spec"), content(back, "spec")); diff != "" {
					t.Fatalf("changed (-want +got):\n%s\nhub: %s", diff, show(hub))
				}
			}
		})
	}
}

// What a client of v1beta1 changes is changed, whatever the annotation has.
func TestChangesInSpokeWin(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			filler, convert, dice := random(3), converters()[name], rand.New(rand.NewSource(3))
			for round := range rounds {
				spoke := convert[1](t, fill(t, filler, kind.hub()))
				other := convert[1](t, fill(t, filler, kind.hub()))
				mix(dice, lossless.At(spoke, "spec"), lossless.At(other, "spec"))
				if round%3 == 0 { // The annotation is that of another object.
					spoke["spec"] = fill(t, filler, kind.spoke())["spec"]
				}
				spoke = normal(t, spoke, kind.spoke())
				fillNamespace(spoke)
				back := convert[1](t, convert[0](t, spoke))
				if diff := cmp.Diff(content(spoke, "spec"), content(back, "spec")); diff != "" {
					t.Fatalf("changed (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// What a client of v1beta2 changes is changed, whatever the annotation has.
func TestChangesInHubWin(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			filler, convert, dice := random(4), converters()[name], rand.New(rand.NewSource(4))
			for range rounds {
				hub := convert[0](t, fill(t, filler, kind.spoke()))
				other := convert[0](t, fill(t, filler, kind.spoke()))
				mix(dice, lossless.At(hub, "spec"), lossless.At(other, "spec"))
				hub = normal(t, hub, kind.hub())
				back := convert[0](t, convert[1](t, hub))
				if diff := cmp.Diff(content(hub, "spec"), content(back, "spec")); diff != "" {
					t.Fatalf("changed (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// mix replaces and removes some fields, at any depth.
func mix(dice *rand.Rand, into, from object) {
	names := make([]string, 0, len(into)+len(from))
	for name := range into {
		names = append(names, name)
	}
	for name := range from {
		if _, ok := into[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		own, isObject := into[name].(object)
		other, isOther := from[name].(object)
		switch n := dice.Intn(10); {
		case isObject && isOther && n < 7:
			mix(dice, own, other)
		case n == 8:
			delete(into, name)
		case n == 9:
			if value, ok := from[name]; ok {
				into[name] = value
			}
		}
	}
}

// show returns the JSON of an object.
func show(o object) string {
	raw, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
