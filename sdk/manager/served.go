package manager

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	servedPoll = 100 * time.Millisecond
	servedWait = 15 * time.Second
	// restWait is how long the rest of the kinds may take after one of them: definitions are installed together, and those of
	// earlier releases lack kinds.
	restWait  = 2 * time.Second
	ourDomain = "cluster.x-k8s.io"
)

// awaitServed waits until the API server serves our kinds, which may just have been installed.
// Controllers only retry every ten seconds if their kinds are missing; the first cluster would
// wait that long. After 15 seconds, or 2 seconds after the last kind that is served, the manager
// starts anyway and logs what is missing.
func awaitServed(ctx context.Context, log logr.Logger, scheme *runtime.Scheme, mapper meta.RESTMapper) {
	missing, end := ownKinds(scheme), time.Now().Add(servedWait)
	// The error says that the time is over.
	_ = wait.PollUntilContextTimeout(ctx, servedPoll, servedWait, true, func(context.Context) (bool, error) {
		before := len(missing)
		missing = slices.DeleteFunc(missing, func(kind schema.GroupVersionKind) bool {
			_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			return err == nil
		})
		if len(missing) < before {
			end = time.Now().Add(restWait)
		}
		return len(missing) == 0 || !time.Now().Before(end), nil
	})
	if len(missing) > 0 && ctx.Err() == nil {
		log.Info("Kinds are not served yet: install their CustomResourceDefinitions", "missing", missing)
	}
}

// ownKinds returns the kinds of a scheme in Cluster API's groups.
func ownKinds(scheme *runtime.Scheme) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for kind := range scheme.AllKnownTypes() {
		if kind.Group != ourDomain && !strings.HasSuffix(kind.Group, "."+ourDomain) {
			continue
		}
		obj, err := scheme.New(kind)
		if _, ok := obj.(client.Object); err == nil && ok {
			kinds = append(kinds, kind)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}
