package webhooks

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Older are the webhooks of an older version of a kind, for what the newest version cannot express: they get objects as clients wrote
// them, before these are converted and admitted like all others. Old objects of updates are in the same version.
type Older struct {
	empty    client.Object
	mutate   admission.Handler
	validate func(*runtime.Scheme) admission.Handler
}

// OlderVersion returns the webhooks of an older version, of which empty is an object. Either may be nil.
func OlderVersion[T client.Object](empty T, d Defaulter[T], v Validator[T]) Older {
	older := Older{empty: empty}
	if d != nil {
		older.mutate = newDefaulting(empty, d).Handler
	}
	if v != nil {
		older.validate = func(scheme *runtime.Scheme) admission.Handler { return admission.WithValidator(scheme, v).Handler }
	}
	return older
}
