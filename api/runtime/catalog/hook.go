package catalog

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Hook identifies a hook: a function whose two arguments are pointers to the request and to the response, which are runtime.Objects.
type Hook any

// HookMeta describes a hook for its documentation.
type HookMeta struct {
	// Tags group hooks.
	Tags []string
	// Summary is a phrase about what the hook does.
	Summary string
	// Description is about when the hook is called, and what its response has an effect on.
	Description string
	// Deprecated marks a hook that will be removed.
	Deprecated bool
	// Singleton marks a hook of which a server has at most one handler; its path has no name.
	Singleton bool
	// PayloadVersion is the version of what requests and responses have of the group cluster.x-k8s.io, such as v1beta2. It is empty for
	// v1beta1, and for hooks that have nothing of it.
	PayloadVersion string
}

// GroupVersionHook identifies a hook by group, version and name.
type GroupVersionHook struct {
	// Group is the API group, such as hooks.runtime.cluster.x-k8s.io.
	Group string
	// Version is the API version, such as v1alpha1.
	Version string
	// Hook is the name, such as BeforeClusterCreate.
	Hook string
}

// Empty reports whether no field is set.
func (h GroupVersionHook) Empty() bool { return h == GroupVersionHook{} }

// GroupVersion returns group and version.
func (h GroupVersionHook) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: h.Group, Version: h.Version}
}

// GroupHook returns group and name.
func (h GroupVersionHook) GroupHook() GroupHook { return GroupHook{Group: h.Group, Hook: h.Hook} }

// String returns "<group>/<version>, Hook=<name>".
func (h GroupVersionHook) String() string {
	return strings.Join([]string{h.Group, "/", h.Version, ", Hook=", h.Hook}, "")
}

// GroupHook identifies a hook in all of its versions.
type GroupHook struct {
	// Group is the API group.
	Group string
	// Hook is the name.
	Hook string
}

// String returns "<group>, Hook=<name>".
func (h GroupHook) String() string { return h.Group + ", Hook=" + h.Hook }

// GVHToPath returns the path of the handler of a hook, below the base path of its server. name is the name of the handler, without the
// ExtensionConfig; it is empty for the hook Discovery.
func GVHToPath(hook GroupVersionHook, name string) string {
	return path.Join("/", hook.Group, hook.Version, strings.ToLower(hook.Hook), strings.ToLower(name))
}
