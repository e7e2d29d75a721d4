package kinds

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// random fills objects of any version.
func random(seed int64) *randfill.Filler {
	own := func(serializer.CodecFactory) []any {
		return []any{
			func(q *resource.Quantity, c randfill.Continue) {
				*q = *resource.NewQuantity(c.Int63n(1000), resource.DecimalSI)
			},
			func(j *apiextensionsv1.JSON, c randfill.Continue) { j.Raw = randomJSON(c) },
			func(s *clusterv1beta1.JSONSchemaProps, c randfill.Continue) { fillSchema(s, c) },
			func(s *clusterv1.JSONSchemaProps, c randfill.Continue) { fillSchema(s, c) },
			func(r *clusterv1.ContractVersionedObjectReference, c randfill.Continue) {
				r.APIGroup, r.Kind, r.Name = strings.ReplaceAll(c.String(9), "/", "."), c.String(9), c.String(9)
			},
			// Without this one, pointers are never set.
			func(t **metav1.Time, c randfill.Continue) {
				if *t = nil; c.Bool() {
					*t = ptr.To(metav1.Unix(c.Int63n(1e10), 0))
				}
			},
			func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(c.Int31n(3)) },
			func(t *bootstrapv1beta1.BootstrapTokenString, c randfill.Continue) { t.ID, t.Secret = token(c) },
			func(t *bootstrapv1.BootstrapTokenString, c randfill.Continue) { t.ID, t.Secret = token(c) },
		}
	}
	scheme := runtime.NewScheme()
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, own), rand.NewSource(seed), serializer.NewCodecFactory(scheme)).
		NumElements(1, 3).NilChance(.2)
}

// randomJSON returns JSON that clients define.
func randomJSON(c randfill.Continue) []byte {
	values := []string{`{}`, `[]`, `""`, `0`, `false`, `{"a":{},"b":[],"c":""}`, `[{"ref":{"kind":"K","name":"n"}}]`, `1.5`, `"x"`}
	return []byte(values[c.Intn(len(values))])
}

// fillSchema fills a schema, whose schemas in it have few fields: the type has no end.
func fillSchema(schema any, c randfill.Continue) {
	document := fmt.Sprintf(`{"type":%q,"default":%s,"required":["a"],"uniqueItems":%t,"properties":{"a":{},"spec":{"type":"object",
		"default":{},"properties":{"value":{"type":"string","minLength":%d}}}},"items":{"pattern":%q},"additionalProperties":{}}`,
		c.String(3), randomJSON(c), c.Bool(), c.Intn(2), "x")
	if err := json.Unmarshal([]byte(document), schema); err != nil {
		panic(err)
	}
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
// some fields of the spec.
func content(tree object, parts ...string) object {
	result := object{}
	for _, part := range parts {
		if value, ok := runtime.DeepCopyJSON(tree)[part].(object); ok {
			var keep []string
			if part == "spec" {
				keep = present()
			}
			result[part] = withoutEmpty(value, keep...)
		}
	}
	return withoutEmpty(result)
}

func withoutEmpty(o object, keep ...string) object {
	for name, value := range o {
		switch typed := value.(type) {
		case object:
			if len(withoutEmpty(typed, keep...)) == 0 && !slices.Contains(keep, name) {
				delete(o, name)
			}
		case []any:
			for _, item := range typed {
				if nested, ok := item.(object); ok {
					withoutEmpty(nested, keep...)
				}
			}
		case nil:
			delete(o, name)
		}
	}
	return o
}

// roundsVariable is the environment variable with the number of random objects per kind and test. Every number begins with the same.
const roundsVariable = "CONVERSION_ROUNDS"

// rounds is how many random objects of a kind are converted.
func rounds(t *testing.T) int {
	t.Helper()
	text, found := os.LookupEnv(roundsVariable)
	if !found {
		return 6
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s: %v", roundsVariable, text, err)
	}
	return number
}

// eachKind runs a test with random objects of every kind.
func eachKind(t *testing.T, seed int64, test func(t *testing.T, k kindTest)) {
	t.Helper()
	number := rounds(t)
	for name, kind := range byName(inMemory) {
		t.Run(name, func(t *testing.T) {
			filler := random(seed)
			dice := rand.New(rand.NewSource(seed))
			for round := range number {
				test(t, kindTest{kind: kind, convert: converters()[name], filler: filler, dice: dice, round: round})
				if t.Failed() {
					t.Fatalf("round %d of %d with seed %d", round+1, number, seed)
				}
			}
		})
	}
}

// kindTest is one round of a test of a kind.
type kindTest struct {
	kind    *lossless.Kind
	convert [2]func(*testing.T, object) object
	filler  *randfill.Filler
	dice    *rand.Rand
	round   int
}

// hub returns a random object of the hub.
func (k kindTest) hub(t *testing.T) object {
	hub := fill(t, k.filler, k.kind.Hub.New())
	if strings.HasPrefix(k.kind.Hub.Kind, "Kubeadm") {
		dropEmptyItems(hub) // Its schema does not allow them.
	}
	return hub
}

// spoke returns a random object of the spoke. Without a Go type, it is what a random object of the hub becomes.
func (k kindTest) spoke(t *testing.T) object {
	if k.kind.Spoke.New == nil {
		spoke := k.convert[1](t, k.hub(t))
		take(t, spoke)
		return spoke
	}
	spoke := fill(t, k.filler, k.kind.Spoke.New())
	k.fill(spoke)
	return spoke
}

// fill sets what clients of the spoke need not set.
func (k kindTest) fill(spoke object) {
	if k.kind.Fill != nil {
		k.kind.Fill(spoke)
	}
}

// normal returns an object of the spoke as its type writes it.
func (k kindTest) normal(t *testing.T, spoke object, version lossless.Version) object {
	if version.New == nil {
		return spoke
	}
	return normal(t, spoke, version.New())
}

// What is written in v1beta2 is the same after clients of v1beta1 read and wrote it.
func TestHubRoundTrip(t *testing.T) {
	eachKind(t, 1, func(t *testing.T, k kindTest) {
		hub := k.hub(t)
		spoke := k.convert[1](t, hub)
		back := k.convert[0](t, spoke)
		if diff := cmp.Diff(content(hub, "spec", "status"), content(back, "spec", "status")); diff != "" {
			t.Errorf("changed (-want +got):\n%s\nspoke: %s", diff, show(spoke))
		}
		if diff := cmp.Diff(hub["metadata"], back["metadata"]); diff != "" {
			t.Errorf("metadata (-want +got):\n%s", diff)
		}
	})
}

// What is written in v1beta1 is what clients of v1beta1 read, although it is stored in v1beta2.
func TestSpokeRoundTrip(t *testing.T) {
	eachKind(t, 2, func(t *testing.T, k kindTest) {
		spoke := k.spoke(t)
		hub := k.convert[0](t, spoke)
		back := k.convert[1](t, hub)
		if diff := cmp.Diff(content(spoke, "spec"), content(back, "spec")); diff != "" {
			t.Errorf("changed (-want +got):\n%s\nhub: %s", diff, show(hub))
		}
	})
}

// What a client of v1beta1 changes is changed, whatever the annotation has.
func TestChangesInSpokeWin(t *testing.T) {
	eachKind(t, 3, func(t *testing.T, k kindTest) {
		if k.kind.Spoke.New == nil {
			return // Without a Go type, the test would remove fields that are required.
		}
		spoke := k.convert[1](t, k.hub(t))
		other := k.convert[1](t, k.hub(t))
		mix(k.dice, lossless.At(spoke, "spec"), lossless.At(other, "spec"))
		if k.round%3 == 0 { // The annotation is that of another object.
			spoke["spec"] = k.spoke(t)["spec"]
		}
		spoke = k.normal(t, spoke, k.kind.Spoke)
		k.fill(spoke)
		back := k.convert[1](t, k.convert[0](t, spoke))
		if diff := cmp.Diff(content(spoke, "spec"), content(back, "spec")); diff != "" {
			t.Errorf("changed (-want +got):\n%s", diff)
		}
	})
}

// What a client of v1beta2 changes is changed, whatever the annotation has.
func TestChangesInHubWin(t *testing.T) {
	eachKind(t, 4, func(t *testing.T, k kindTest) {
		hub := k.convert[0](t, k.spoke(t))
		other := k.convert[0](t, k.spoke(t))
		mix(k.dice, lossless.At(hub, "spec"), lossless.At(other, "spec"))
		hub = k.normal(t, hub, k.kind.Hub)
		back := k.convert[0](t, k.convert[1](t, hub))
		if diff := cmp.Diff(content(hub, "spec"), content(back, "spec")); diff != "" {
			t.Errorf("changed (-want +got):\n%s", diff)
		}
	})
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
	if into == nil {
		return
	}
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
