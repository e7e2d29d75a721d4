package extension

import (
	"context"
	"strconv"

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

// record records a call, and returns the ConfigMap, nil if it does not exist.
func record(ctx context.Context, c client.Client, namespace, hook string) (*unstructured.Unstructured, error) {
	var result *unstructured.Unstructured
	err := change(ctx, c, namespace, func(record *unstructured.Unstructured) error {
		result = record
		return unstructured.SetNestedField(record.Object, strconv.Itoa(Calls(record, hook)+1), "data", hook+callsSuffix)
	})
	return result, client.IgnoreNotFound(err)
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
