package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/columns"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// representation is the negotiated form of a response.
type representation struct {
	yaml bool
	// as is the kind to convert objects to: Table, PartialObjectMetadata, PartialObjectMetadataList,
	// APIGroupDiscoveryList, or empty for objects as they are.
	as string
}

// negotiate returns the first supported representation in an Accept header. Clients that prefer Protobuf or CBOR also
// accept JSON.
func negotiate(accept string) (representation, error) {
	if accept == "" {
		return representation{}, nil
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		var r representation
		switch clause.Type + "/" + clause.SubType {
		case "application/json", "*/*", "application/*":
		case "application/yaml":
			r.yaml = true
		default:
			continue
		}
		switch as := clause.Params["as"]; {
		case as == "":
			return r, nil
		case clause.Params["g"] == metav1.GroupName && (as == "Table" || strings.HasPrefix(as, "PartialObjectMetadata")) &&
			(clause.Params["v"] == "v1" || clause.Params["v"] == "v1beta1"):
			r.as = as
			return r, nil
		case clause.Params["g"] == "apidiscovery.k8s.io" && clause.Params["v"] == "v2":
			r.as = as
			return r, nil
		}
	}
	return representation{}, apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "get", store.Resource{}, "",
		"only the following media types are accepted: application/json, application/yaml", 0, false)
}

// objects converts stored objects to a representation.
type objects struct {
	representation
	resource *resource
	tables   *columns.Tables
	// include is what a table's row contains of its object: None, Metadata or Object.
	include string
}

// one returns the representation of one object.
func (o objects) one(stored *store.Object) ([]byte, error) {
	switch {
	case o.as == "Table":
		return o.tables.Encode(o.resource.gvk, []*store.Object{stored}, metaOf(stored), o.include, true)
	case strings.HasPrefix(o.as, "PartialObjectMetadata"):
		return columns.Metadata(stored)
	}
	return stored.Raw(), nil
}

// list returns the representation of a list.
func (o objects) list(stored []*store.Object, meta metav1.ListMeta) ([]byte, error) {
	kind, apiVersion := o.resource.gvk.Kind+"List", o.resource.gvk.GroupVersion().String()
	encode := func(stored *store.Object) ([]byte, error) { return stored.Raw(), nil }
	switch {
	case o.as == "Table":
		return o.tables.Encode(o.resource.gvk, stored, meta, o.include, true)
	case strings.HasPrefix(o.as, "PartialObjectMetadata"):
		kind, apiVersion, encode = "PartialObjectMetadataList", metav1.SchemeGroupVersion.String(), columns.Metadata
	}
	metadata, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	size := 128 + len(metadata)
	for _, s := range stored {
		size += len(s.Raw()) + 1
	}
	b.Grow(size)
	fmt.Fprintf(&b, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, kind, apiVersion, metadata)
	for i, s := range stored {
		if i > 0 {
			b.WriteByte(',')
		}
		text, err := encode(s)
		if err != nil {
			return nil, err
		}
		b.Write(text)
	}
	b.WriteString("]}")
	return b.Bytes(), nil
}

// metaOf returns the metadata of a table of one object.
func metaOf(stored *store.Object) metav1.ListMeta {
	return metav1.ListMeta{ResourceVersion: formatRevision(stored.Revision)}
}

// event returns the representation of an object in a watch. Only the first table has column definitions.
func (o objects) event(stored *store.Object, first bool) ([]byte, error) {
	if o.as == "Table" {
		return o.tables.Encode(o.resource.gvk, []*store.Object{stored}, metaOf(stored), o.include, first)
	}
	return o.one(stored)
}

// bookmark returns the object of a bookmark.
func (o objects) bookmark(revision uint64, initialEventsEnd bool) ([]byte, error) {
	metadata := map[string]any{"resourceVersion": strconv.FormatUint(revision, 10)}
	if initialEventsEnd {
		metadata["annotations"] = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	kind, apiVersion := o.resource.gvk.Kind, o.resource.gvk.GroupVersion().String()
	switch {
	case o.as == "Table":
		return o.tables.Bookmark(o.resource.gvk, metadata)
	case strings.HasPrefix(o.as, "PartialObjectMetadata"):
		kind, apiVersion = "PartialObjectMetadata", metav1.SchemeGroupVersion.String()
	}
	return json.Marshal(map[string]any{"kind": kind, "apiVersion": apiVersion, "metadata": metadata})
}

// write sends a response that is encoded as JSON.
func (r representation) write(w http.ResponseWriter, code int, text []byte) {
	if !r.yaml {
		writeBytes(w, code, "application/json", text)
		return
	}
	converted, err := yaml.JSONToYAML(text)
	if err != nil {
		writeBytes(w, code, "application/json", text)
		return
	}
	writeBytes(w, code, "application/yaml", converted)
}
