package extensionconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestHandlersOf(t *testing.T) {
	one := func(change func(*runtimehooksv1.ExtensionHandler)) []runtimehooksv1.ExtensionHandler {
		h := runtimehooksv1.ExtensionHandler{
			Name: "a", RequestHook: runtimehooksv1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate"},
		}
		change(&h)
		return []runtimehooksv1.ExtensionHandler{h}
	}
	plain := one(func(*runtimehooksv1.ExtensionHandler) {})
	timeout := func(seconds int32) []runtimehooksv1.ExtensionHandler {
		return one(func(h *runtimehooksv1.ExtensionHandler) { h.TimeoutSeconds = ptr.To(seconds) })
	}
	payload := func(version string) []runtimehooksv1.ExtensionHandler {
		return one(func(h *runtimehooksv1.ExtensionHandler) { h.PayloadVersion = version })
	}
	annotated := map[string]string{runtimev1.PayloadVersionAnnotation: "v1beta2"}
	status := func(change func(*runtimev1.ExtensionHandler)) []runtimev1.ExtensionHandler {
		h := inStatus("a.e", "BeforeClusterCreate")
		change(&h)
		return []runtimev1.ExtensionHandler{h}
	}
	hooks, err := allHooks()
	testenv.Must(t, err)
	const prefix = `the response of the server is invalid: handlers[0] "a": `
	for _, tc := range []struct {
		reason      string
		annotations map[string]string
		in          []runtimehooksv1.ExtensionHandler
		want        []runtimev1.ExtensionHandler
		err         string
	}{
		{reason: "none"},
		{reason: "defaults", in: plain, want: status(func(*runtimev1.ExtensionHandler) {})},
		{reason: "the longest timeout", in: timeout(30), want: status(func(h *runtimev1.ExtensionHandler) { h.TimeoutSeconds = 30 })},
		{reason: "no timeout is the longest one", in: timeout(0), want: status(func(h *runtimev1.ExtensionHandler) { h.TimeoutSeconds = 30 })},
		{reason: "ignored failures", in: one(func(h *runtimehooksv1.ExtensionHandler) { h.FailurePolicy = ptr.To(runtimehooksv1.FailurePolicyIgnore) }),
			want: status(func(h *runtimev1.ExtensionHandler) { h.FailurePolicy = runtimev1.FailurePolicyIgnore })},
		{reason: "payloads in v1beta2", in: payload("v1beta2"), want: status(func(h *runtimev1.ExtensionHandler) { h.PayloadVersion = "v1beta2" })},
		{reason: "the annotation is for handlers that request no version", annotations: annotated, in: plain,
			want: status(func(h *runtimev1.ExtensionHandler) { h.PayloadVersion = "v1beta2" })},
		{reason: "a handler knows better than the annotation", annotations: annotated, in: payload("v1beta1"),
			want: status(func(h *runtimev1.ExtensionHandler) { h.PayloadVersion = "v1beta1" })},
		{reason: "payloads of the future", in: payload("v1"), err: prefix + `payloadVersion must be v1beta1 or v1beta2, not "v1"`},
		{reason: "a hook that v1.7 did not have", in: one(func(h *runtimehooksv1.ExtensionHandler) { h.RequestHook.Hook = "GenerateUpgradePlan" }),
			want: status(func(h *runtimev1.ExtensionHandler) { h.RequestHook.Hook = "GenerateUpgradePlan" })},
		{reason: "too long", in: timeout(31), err: prefix + "timeoutSeconds must be between 0 and 30, not 31"},
		{reason: "negative", in: timeout(-1), err: prefix + "timeoutSeconds must be between 0 and 30, not -1"},
		{reason: "another policy", in: one(func(h *runtimehooksv1.ExtensionHandler) {
			h.FailurePolicy = ptr.To[runtimehooksv1.FailurePolicy]("Panic")
		}), err: prefix + "failurePolicy must be Fail or Ignore"},
		{reason: "another version", in: one(func(h *runtimehooksv1.ExtensionHandler) {
			h.RequestHook.APIVersion = "hooks.runtime.cluster.x-k8s.io/v9"
		}),
			err: prefix + `requestHook "BeforeClusterCreate" of "hooks.runtime.cluster.x-k8s.io/v9" is unknown to this version of Cluster API`},
		{reason: "not a version", in: one(func(h *runtimehooksv1.ExtensionHandler) { h.RequestHook.APIVersion = "a/b/c" }),
			err: prefix + `requestHook "BeforeClusterCreate" of "a/b/c" is unknown to this version of Cluster API`},
		{reason: "the same name twice", in: append(plain, plain...), err: `the response of the server is invalid: handlers[1] "a": name must be unique`},
		{reason: "a name that never ends", in: one(func(h *runtimehooksv1.ExtensionHandler) { h.Name = strings.Repeat("a", 300) }),
			err: `the response of the server is invalid: handlers[0] "` + strings.Repeat("a", 197) + `...": name must be a DNS label, such as wait-for-backup`},
		{reason: "too many", in: make([]runtimehooksv1.ExtensionHandler, 501), err: "the server has 501 handlers: at most 500 are supported"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := handlersOf(&runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "e", Annotations: tc.annotations}},
				&runtimehooksv1.DiscoveryResponse{Handlers: tc.in}, hooks)
			if (err != nil || tc.err != "") && (err == nil || err.Error() != tc.err) {
				t.Errorf("got  %v\nwant %s", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
