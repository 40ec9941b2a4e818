package record

// MaxPage bounds every list, whatever the caller asks for.
const MaxPage = 1000

// PageSize is how many items a page of limit has.
func PageSize(limit int) int {
	if limit <= 0 {
		return 50
	}
	return min(limit, MaxPage)
}
