package shop

import (
	"context"
	"errors"
	"time"
)

// Catalogue is what customers see.
//
//carillon:timer description="Catalogue: feeds, search and prices"
type Catalogue struct {
	Shop *Shop
}

// errFeedLine is what some price feeds have in them.
var errFeedLine = errors.New("price feed, line 4812: 12,90 is no price: the decimal mark is a point")

// USPrices reads the prices of the dealer in New York.
//
//carillon:clock name=price-feed-us cron="*/30 * * * *" zone=America/New_York idempotent retries=1 retry-delay=5s timeout=5m labels="team=catalogue" owner=catalogue@shop.example description="Read the price feed of the dealer in New York"
func (c *Catalogue) USPrices(ctx context.Context) (Done, error) {
	if err := partner(ctx, 5*time.Second); err != nil {
		return Done{}, err
	}
	if moody(ctx, 12) {
		return Done{}, errFeedLine
	}
	return c.Shop.look(ctx, "SELECT COUNT(*) FROM products WHERE price_cents > 0")
}

// USProducts reads the product feed of the dealer in New York.
//
//carillon:clock name=product-feed-us cron="15 6 * * *" zone=America/New_York idempotent timeout=15m labels="team=catalogue" owner=catalogue@shop.example description="Read the product feed of the dealer in New York"
func (c *Catalogue) USProducts(ctx context.Context) (Done, error) {
	if err := partner(ctx, 45*time.Second); err != nil {
		return Done{}, err
	}
	return c.Shop.look(ctx, "SELECT COUNT(*) FROM products")
}

// UpdateSearch brings the search index up to date.
//
//carillon:clock name=search-index cron="*/5 * * * *" zone=Europe/Berlin idempotent timeout=2m labels="team=catalogue" owner=catalogue@shop.example description="Bring the search index up to date"
func (c *Catalogue) UpdateSearch(ctx context.Context) (Done, error) {
	if err := partner(ctx, 8*time.Second); err != nil {
		return Done{}, err
	}
	return c.Shop.change(ctx, "INSERT INTO search_index (product_id, words) SELECT id, lower(name) FROM products WHERE true ON CONFLICT (product_id) DO UPDATE SET words = excluded.words")
}

// RebuildSearch makes the search index anew, at a time that a day of the clock change may not have.
//
//carillon:clock name=search-rebuild cron="30 2 * * *" zone=Europe/Berlin idempotent timeout=10m labels="team=catalogue" owner=catalogue@shop.example description="Make the search index anew"
func (c *Catalogue) RebuildSearch(ctx context.Context) (Done, error) {
	if err := partner(ctx, 50*time.Second); err != nil {
		return Done{}, err
	}
	return c.Shop.change(ctx, "DELETE FROM search_index WHERE product_id NOT IN (SELECT id FROM products)")
}

// ExchangeRates asks for the rates of the hour.
//
//carillon:clock name=exchange-rates cron="5 * * * *" zone=UTC idempotent retries=2 retry-delay=10s timeout=1m labels="team=books" owner=books@shop.example description="Ask for the exchange rates of the hour"
func (c *Catalogue) ExchangeRates(ctx context.Context) (Done, error) {
	if err := partner(ctx, 400*time.Millisecond); err != nil {
		return Done{}, err
	}
	return c.Shop.change(ctx, "INSERT INTO exchange_rates (currency, at) VALUES ('CNY', ?1), ('EUR', ?1), ('USD', ?1) ON CONFLICT (currency) DO UPDATE SET at = excluded.at", c.Shop.since(0))
}

// Sitemap lists the pages of all products for search engines.
//
//carillon:clock name=sitemap cron="45 4 * * *" zone=Europe/Berlin idempotent timeout=5m labels="team=catalogue" owner=catalogue@shop.example description="List the pages of all products"
func (c *Catalogue) Sitemap(ctx context.Context) (Done, error) {
	if err := partner(ctx, 7*time.Second); err != nil {
		return Done{}, err
	}
	return c.Shop.look(ctx, "SELECT COUNT(*) FROM products WHERE stock > 0")
}

// CleanImages deletes images of products that are gone.
//
//carillon:clock name=image-cleanup cron="0 5 * * SUN" zone=Europe/Berlin idempotent timeout=30m labels="team=catalogue" owner=catalogue@shop.example description="Delete images without a product"
func (c *Catalogue) CleanImages(ctx context.Context) (Done, error) {
	if err := partner(ctx, 55*time.Second); err != nil {
		return Done{}, err
	}
	return c.Shop.change(ctx, "DELETE FROM search_index WHERE words = ''")
}
