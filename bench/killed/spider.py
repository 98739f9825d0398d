"""A spider for Scrapy: the first page says how many there are, and the others are asked for in parallel. Run as
its documentation says for jobs that are to be resumed, with JOBDIR, and with a feed that is appended to:

    scrapy runspider spider.py -a base=URL -s JOBDIR=DIR/job -o DIR/stored.jsonl
"""

from urllib.parse import urlencode

import scrapy

from peer import LIST, MONTH, PATH


IN_FLIGHT = 16


class Contratacoes(scrapy.Spider):
    name = "contratacoes"
    custom_settings = {
        "CONCURRENT_REQUESTS": IN_FLIGHT,
        "CONCURRENT_REQUESTS_PER_DOMAIN": IN_FLIGHT,
        "TELNETCONSOLE_ENABLED": False,
    }

    def __init__(self, base, **more):
        super().__init__(**more)
        self.base = base
        self.start_urls = [self.page(1)]

    def page(self, number):
        return f"{self.base}/{PATH}?{urlencode({**LIST, **MONTH, 'pagina': number})}"

    def parse(self, response):
        page = response.json()
        yield from page["data"]
        if page["numeroPagina"] == 1:
            for number in range(2, page["totalPaginas"] + 1):
                yield scrapy.Request(self.page(number))
