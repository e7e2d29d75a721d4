package reference

import "sigs.k8s.io/cluster-api/sdk/contract"

// Found is a provider object as a reconcile has found it.
type Found struct {
	// Looked is set once the object was looked for.
	Looked bool
	// Object is nil if it does not exist. Err is why it could not be read or evaluated.
	Object *contract.Object
	Err    error
}

// FoundOf returns what a look for an object resulted in.
func FoundOf(obj contract.Object, exists bool, err error) Found {
	f := Found{Looked: true, Err: err}
	if exists {
		f.Object = &obj
	}
	return f
}
