package apply

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// rule is one for a resource of the group toy.example.com.
func rule(resource string, operations ...admissionv1.OperationType) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{Operations: operations, Rule: admissionv1.Rule{
		APIGroups: []string{"toy.example.com"}, APIVersions: []string{"v1"}, Resources: []string{resource},
	}}
}

func TestWaitWebhooks(t *testing.T) {
	const create = admissionv1.Create
	untrusted := apierrors.NewInternalError(errors.New(`failed calling webhook "default.toy": failed to call webhook: Post "https://toy": x509: unknown authority`))
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "dolls"}, "x", errors.New(`admission webhook "validate.toy" denied the request`))
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Doll"}, "x", nil)
	for _, tt := range []struct {
		reason string
		policy admissionv1.FailurePolicyType
		rules  []admissionv1.RuleWithOperations
		// answers are those to creations, the last one to all others; nil means success.
		answers []error
		want    []string
		err     string
	}{
		{"the API server notices the CA bundle later", admissionv1.Fail, []admissionv1.RuleWithOperations{rule("dolls", create)},
			[]error{untrusted, untrusted, nil}, []string{"report", "Doll", "Doll", "Doll"}, ""},
		{"who is denied was asked", admissionv1.Fail, []admissionv1.RuleWithOperations{rule("dolls", create), rule("puppets", create)},
			[]error{denied}, []string{"Doll"}, ""},
		{"an object that does not fit the schema asks nobody", admissionv1.Fail, []admissionv1.RuleWithOperations{rule("dolls", create), rule("puppets", create)},
			[]error{invalid, untrusted, invalid, denied}, []string{"report", "Doll", "Puppet", "Doll", "Puppet"}, ""},
		{"what cannot be found out is not waited for", admissionv1.Fail, []admissionv1.RuleWithOperations{rule("dolls", create)},
			[]error{invalid}, []string{"Doll"}, ""},
		{"failures that are ignored", admissionv1.Ignore, []admissionv1.RuleWithOperations{rule("dolls", create)}, []error{untrusted}, nil, ""},
		{"other operations, subresources and kinds", admissionv1.Fail, []admissionv1.RuleWithOperations{
			rule("dolls", admissionv1.Delete), rule("dolls/status", create), rule("*", create), rule("cars", create)}, []error{untrusted}, nil, ""},
		{"it is never trusted", admissionv1.Fail, []admissionv1.RuleWithOperations{rule("dolls", create)},
			[]error{untrusted}, nil, `the API server cannot call the webhooks after 300ms: Internal error occurred: failed calling webhook "default.toy"`},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			labels := map[string]string{"cluster.x-k8s.io/provider": "toy"}
			config := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "toy", Labels: labels}}
			config.Webhooks = []admissionv1.MutatingWebhook{{Name: "default.toy", FailurePolicy: ptr.To(tt.policy), Rules: tt.rules}}
			other := config.DeepCopy()
			other.Name, other.Labels = "other", nil
			mapper := meta.NewDefaultRESTMapper(nil)
			for _, kind := range []string{"Doll", "Puppet"} {
				mapper.Add(schema.GroupVersionKind{Group: "toy.example.com", Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
			}
			var got []string
			answers := tt.answers
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(config, other).WithRESTMapper(mapper).
				WithInterceptorFuncs(interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.CreateOption) error {
					if o.GetNamespace() != "toy-system" || len((&client.CreateOptions{}).ApplyOptions(options).DryRun) == 0 {
						t.Errorf("it creates %s in namespace %q with %v", o.GetName(), o.GetNamespace(), options)
					}
					got = append(got, o.GetObjectKind().GroupVersionKind().Kind)
					answer := answers[0]
					answers = answers[min(1, len(answers)-1):]
					return answer
				}}).Build()
			timeout := time.Minute
			if tt.err != "" {
				timeout = 300 * time.Millisecond
			}
			err := WaitWebhooks(t.Context(), c, "toy-system", timeout, func(string) { got = append([]string{"report"}, got...) }, client.MatchingLabels(labels))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
