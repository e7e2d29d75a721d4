package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/access"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// call is an API request being processed.
type call struct {
	*request
	server   *Server
	endpoint *Endpoint
	group    *cloud.Group
	user     *access.User
	w        http.ResponseWriter
	r        *http.Request
	accept   representation
	// legacy is whether the cluster emulates an old API server.
	legacy bool
}

// failure converts errors of faults and the store into API errors.
func failure(err error) error {
	if errors.Is(err, faults.ErrInjected) || errors.Is(err, store.ErrDeleted) {
		return apierrors.NewInternalError(err)
	}
	return err
}

// notServed returns the error for an unknown path.
func notServed(r *http.Request) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, strings.ToLower(r.Method), schema.GroupResource{}, "",
		fmt.Sprintf("the path %s is not served here", r.URL.Path), 0, true)
}

// answer sends one object.
func (c *call) answer(code int, o *store.Object) error {
	text, err := c.objects().one(o)
	if err != nil {
		return err
	}
	c.accept.write(c.w, code, text)
	return nil
}

func (c *call) objects() objects {
	return objects{
		representation: c.accept, resource: c.resource, tables: c.server.tables,
		include: c.query.Get("includeObject"),
	}
}

// notSimulated returns the error for a subresource that requires running containers. Clients that want to upgrade the
// connection also show its message.
func (c *call) notSimulated() error {
	o, err := c.group.Get(c.key())
	if err != nil {
		return err
	}
	reason := map[string]string{
		"attach": "there is no process to attach to", "exec": "no command can run in it", "log": "its containers write no logs",
	}[c.subresource]
	return apierrors.NewBadRequest(fmt.Sprintf("Pod %s/%s is simulated: %s", o.Key.Namespace, o.Key.Name, reason))
}
