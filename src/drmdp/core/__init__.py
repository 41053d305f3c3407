"""What knows neither a set nor a method."""
