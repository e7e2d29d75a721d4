package apiserver

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/change"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// manager returns the field manager of a request: the specified one, or the client program's name.
func (c *call) manager() string {
	if manager := c.query.Get("fieldManager"); manager != "" {
		return manager
	}
	name, _, _ := strings.Cut(c.r.UserAgent(), "/")
	return name
}

func (c *call) writeOptions() store.WriteOptions { return store.WriteOptions{DryRun: c.dryRun()} }

func (c *call) create() error {
	decoded, err := c.decodeBody(c.resource.gvk)
	if err != nil {
		return err
	}
	o := decoded.(typedObject) // All stored kinds have metadata.
	if err := c.prepareCreate(o); err != nil {
		return err
	}
	u, err := canonical(o, c.resource.gvk)
	if err != nil {
		return err
	}
	created, err := c.group.Create(c.resource.groupResource(), c.server.appliers.Track(c.resource.managed(), "", nil, u, c.manager()),
		c.writeOptions())
	if err != nil {
		return err
	}
	return c.answer(http.StatusCreated, created)
}

func (c *call) update() error {
	decoded, err := c.decodeBody(c.resource.gvk)
	if err != nil {
		return err
	}
	o := decoded.(typedObject) // All stored kinds have metadata.
	if err := c.prepareUpdate(o); err != nil {
		return err
	}
	u, err := canonical(o, c.resource.gvk)
	if err != nil {
		return err
	}
	updated, err := c.group.Update(c.key(), c.writeOptions(), func(current *store.Object) (*unstructured.Unstructured, error) {
		return c.succeed(current.Unstructured(), u.DeepCopy()), nil
	})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, updated)
}

// succeed prepares a client's object as the new version of the live one: immutable fields are kept, and changed fields
// are tracked as the manager's.
func (c *call) succeed(live, wanted *unstructured.Unstructured) *unstructured.Unstructured {
	c.restrict(live, wanted)
	return c.server.appliers.Track(c.resource.managed(), c.subresource, live, wanted, c.manager())
}

// restrict reverts changes that the request must not make: to the status, unless it is for the status subresource, which
// must only change status and metadata.
func (c *call) restrict(live, wanted *unstructured.Unstructured) {
	if !c.resource.status {
		return
	}
	if c.subresource != "status" {
		copyField(live.Object, wanted.Object, "status")
		return
	}
	for field := range wanted.Object {
		if field != "status" && field != "metadata" {
			copyField(live.Object, wanted.Object, field)
		}
	}
	for field := range live.Object {
		if field != "status" && field != "metadata" {
			copyField(live.Object, wanted.Object, field)
		}
	}
}

func copyField(from, to map[string]any, field string) {
	value, found := from[field]
	if !found {
		delete(to, field)
		return
	}
	to[field] = value
}

func (c *call) delete() error {
	options, err := c.deleteOptions()
	if err != nil {
		return err
	}
	last, gone, err := c.group.Delete(c.key(), options)
	if err != nil {
		return err
	}
	if !gone {
		return c.answer(http.StatusOK, last)
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Name: c.name, Group: c.resource.gvk.Group, Kind: c.resource.plural, UID: last.UID},
	}
	return c.answerJSON(http.StatusOK, status)
}

func (c *call) answerJSON(code int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	c.accept.write(c.w, code, text)
	return nil
}

func (c *call) deleteCollection() error {
	options, err := c.deleteOptions()
	if err != nil {
		return err
	}
	selector, err := c.selector()
	if err != nil {
		return err
	}
	if c.resource.groupResource() == store.Namespaces() {
		return apierrors.NewMethodNotSupported(c.resource.groupResource(), c.verb)
	}
	stored, revision := c.group.List(c.resource.groupResource(), c.namespace, selector)
	for _, o := range stored {
		if _, _, err := c.group.Delete(o.Key, options); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	text, err := c.objects().list(stored, metav1.ListMeta{ResourceVersion: formatRevision(revision)})
	if err != nil {
		return err
	}
	c.accept.write(c.w, http.StatusOK, text)
	return nil
}

// deleteOptions reads the delete options from the body, or else from the query.
func (c *call) deleteOptions() (store.DeleteOptions, error) {
	var sent metav1.DeleteOptions
	if err := c.decodeDeleteOptions(&sent); err != nil {
		return store.DeleteOptions{}, err
	}
	return c.readDeleteOptions(sent)
}

func (c *call) readDeleteOptions(sent metav1.DeleteOptions) (store.DeleteOptions, error) {
	options := store.DeleteOptions{DryRun: c.dryRun() || slices.Contains(sent.DryRun, metav1.DryRunAll)}
	if sent.Preconditions != nil {
		if sent.Preconditions.UID != nil {
			options.UID = string(*sent.Preconditions.UID)
		}
		if sent.Preconditions.ResourceVersion != nil {
			options.ResourceVersion = *sent.Preconditions.ResourceVersion
			if c.legacy {
				options.ResourceVersion = strings.TrimPrefix(options.ResourceVersion, "v")
			}
		}
	}
	if policy := c.query.Get("propagationPolicy"); policy != "" && sent.PropagationPolicy == nil {
		sent.PropagationPolicy = (*metav1.DeletionPropagation)(&policy)
	}
	switch {
	case sent.PropagationPolicy != nil:
		options.Propagation = *sent.PropagationPolicy
	case sent.OrphanDependents != nil && *sent.OrphanDependents: //nolint:staticcheck // old clients use it
		options.Propagation = metav1.DeletePropagationOrphan
	}
	if text := c.query.Get("gracePeriodSeconds"); text != "" && sent.GracePeriodSeconds == nil {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return store.DeleteOptions{}, apierrors.NewBadRequest("invalid gracePeriodSeconds")
		}
		sent.GracePeriodSeconds = &seconds
	}
	if sent.GracePeriodSeconds != nil {
		period := time.Duration(max(*sent.GracePeriodSeconds, 0)) * time.Second
		options.GracePeriod = &period
	}
	return options, nil
}

func (c *call) decodeDeleteOptions(into *metav1.DeleteOptions) error {
	body, mediaType, err := c.readBody()
	if err != nil || len(body) == 0 {
		return err
	}
	switch mediaType {
	case change.Protobuf:
		_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, into)
	case "application/yaml":
		if body, err = toJSON(body); err == nil {
			err = json.Unmarshal(body, into)
		}
	case "application/json":
		err = json.Unmarshal(body, into)
	default:
		return change.UnsupportedMediaType(mediaType)
	}
	if err != nil {
		return apierrors.NewBadRequest("decode DeleteOptions: " + err.Error())
	}
	return nil
}
