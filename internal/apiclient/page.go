package apiclient

import (
	"context"
	"strconv"
)

// maxPage is the largest page that the server gives.
const maxPage = 200

// List follows a list's pages until limit items are there; limit 0 = all. The
// operation gives pages of T.
func List[T, P, Page any](
	ctx context.Context, limit int, operation func(context.Context, P, ...Edit) (Doc[Page], error), params P,
) ([]Doc[T], error) {
	return follow[T](limit, func(page Edit) (Doc[Page], error) { return operation(ctx, params, page) })
}

// ListOf is List for an operation about one object.
func ListOf[T, P, Page any](
	ctx context.Context, limit int, operation func(context.Context, string, P, ...Edit) (Doc[Page], error), id string, params P,
) ([]Doc[T], error) {
	return follow[T](limit, func(page Edit) (Doc[Page], error) { return operation(ctx, id, params, page) })
}

func follow[T, Page any](limit int, next func(Edit) (Doc[Page], error)) ([]Doc[T], error) {
	items, cursor := []Doc[T]{}, ""
	for {
		n := maxPage
		if limit > 0 {
			n = min(n, limit-len(items))
		}
		page, err := next(func(r *Request) {
			r.query("limit", strconv.Itoa(n))
			r.query("cursor", cursor)
		})
		if err != nil {
			return nil, err
		}
		more, err := Items[T](page)
		if err != nil {
			return nil, err
		}
		items = append(items, more.Items...)
		if more.NextCursor == nil || (limit > 0 && len(items) >= limit) {
			return items, nil
		}
		cursor = *more.NextCursor
	}
}

// Page is one page of a list with the server's bytes of each item.
type Page[T any] struct {
	Items      []Doc[T] `json:"items"`
	NextCursor *string  `json:"nextCursor"`
}

// Items reads an answer as one page.
func Items[T, P any](d Doc[P]) (Page[T], error) {
	page, err := As[Page[T]](d)
	return page.Value, err
}
