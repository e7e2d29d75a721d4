package extension

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The lifecycle hooks.
const (
	BeforeClusterCreate          = "BeforeClusterCreate"
	AfterControlPlaneInitialized = "AfterControlPlaneInitialized"
	BeforeClusterUpgrade         = "BeforeClusterUpgrade"
	AfterControlPlaneUpgrade     = "AfterControlPlaneUpgrade"
	AfterClusterUpgrade          = "AfterClusterUpgrade"
	BeforeClusterDelete          = "BeforeClusterDelete"
)

const (
	// Record is the name of the ConfigMap. Calls of Clusters in namespaces without it are not recorded.
	Record = "hooks"
	// CalledLabel is the label of the namespaces for which the extension is called.
	CalledLabel = "fault.example.com/hooks"

	callsSuffix  = ".calls"
	answerSuffix = ".answer"
	block        = "block"
	phasesKey    = "phases"
)

// Phase is how the extension answers hooks of external patches.
type Phase string

const (
	// Away means that calls of GeneratePatches fail, as if the server was unreachable.
	Away Phase = "away"
	// Random means that each answer to GeneratePatches is another one.
	Random Phase = "random"
	// Rejects means that ValidateTopology fails.
	Rejects Phase = "rejects"
	// Answers means that all calls succeed, with answers that only depend on the request. It is the last phase.
	Answers Phase = ""
)

// NewRecord returns the ConfigMap for a namespace without calls, in which these hooks block.
func NewRecord(namespace string, blocking ...string) *unstructured.Unstructured {
	record := empty(namespace)
	data := map[string]any{}
	for _, hook := range blocking {
		data[hook+answerSuffix] = block
	}
	record.Object["data"] = data
	return record
}

// PhaseOf returns the current phase according to the ConfigMap, which may be nil.
func PhaseOf(record *unstructured.Unstructured) Phase {
	first, _, _ := strings.Cut(value(record, phasesKey), ",")
	return Phase(first)
}

// Begin makes the extension go through phases for a namespace: EndPhase ends the current one, Answers follows the last one.
func Begin(ctx context.Context, c client.Client, namespace string, phases ...Phase) error {
	return change(ctx, c, namespace, func(record *unstructured.Unstructured) error { return setPhases(record, phases) })
}

// EndPhase ends a phase of a namespace, if it is the current one.
func EndPhase(ctx context.Context, c client.Client, namespace string, ended Phase) error {
	return change(ctx, c, namespace, func(record *unstructured.Unstructured) error {
		if PhaseOf(record) != ended {
			return nil
		}
		var left []Phase
		if _, rest, more := strings.Cut(value(record, phasesKey), ","); more {
			left = append(left, Phase(rest))
		}
		return setPhases(record, left)
	})
}

func setPhases(record *unstructured.Unstructured, phases []Phase) error {
	if len(phases) == 0 {
		unstructured.RemoveNestedField(record.Object, "data", phasesKey)
		return nil
	}
	text := make([]string, len(phases))
	for i, p := range phases {
		text[i] = string(p)
	}
	return unstructured.SetNestedField(record.Object, strings.Join(text, ","), "data", phasesKey)
}

func empty(namespace string) *unstructured.Unstructured {
	record := &unstructured.Unstructured{Object: map[string]any{}}
	record.SetAPIVersion("v1")
	record.SetKind("ConfigMap")
	record.SetNamespace(namespace)
	record.SetName(Record)
	return record
}

// Calls returns how often a hook was called according to the ConfigMap, which may be nil.
func Calls(record *unstructured.Unstructured, hook string) int {
	n, _ := strconv.Atoi(value(record, hook+callsSuffix))
	return n
}

// Blocks reports whether a hook blocks according to the ConfigMap, which may be nil.
func Blocks(record *unstructured.Unstructured, hook string) bool {
	return value(record, hook+answerSuffix) == block
}

func value(record *unstructured.Unstructured, key string) string {
	if record == nil {
		return ""
	}
	text, _, _ := unstructured.NestedString(record.Object, "data", key)
	return text
}

// Release makes a hook of a namespace no longer block.
func Release(ctx context.Context, c client.Client, namespace, hook string) error {
	return change(ctx, c, namespace, func(record *unstructured.Unstructured) error {
		unstructured.RemoveNestedField(record.Object, "data", hook+answerSuffix)
		return nil
	})
}

// CallsIn returns how often a hook of external patches was called in a phase according to the ConfigMap, which may be nil.
func CallsIn(record *unstructured.Unstructured, phase Phase) int { return Calls(record, string(phase)) }

// record records a call of a hook, or of one in these phases, and returns the ConfigMap, nil if it does not exist.
func record(ctx context.Context, c client.Client, namespace, hook string, phases ...Phase) (*unstructured.Unstructured, error) {
	var result *unstructured.Unstructured
	err := change(ctx, c, namespace, func(record *unstructured.Unstructured) error {
		result = record
		if now := PhaseOf(record); slices.Contains(phases, now) {
			return count(record, string(now))
		}
		return count(record, hook)
	})
	return result, client.IgnoreNotFound(err)
}

func count(record *unstructured.Unstructured, what string) error {
	return unstructured.SetNestedField(record.Object, strconv.Itoa(Calls(record, what)+1), "data", what+callsSuffix)
}

func change(ctx context.Context, c client.Client, namespace string, edit func(*unstructured.Unstructured) error) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		record := empty(namespace)
		if err := c.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		if err := edit(record); err != nil {
			return err
		}
		return c.Update(ctx, record)
	})
}
